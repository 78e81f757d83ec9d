// strata rates: prompt and output tokens a second over prompt lengths, as tables and records.
#include "measure/rates.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/hash.h"
#include "base/mapped_file.h"
#include "cli/commands.h"
#include "cli/evidence_settings.h"
#include "cli/model_settings.h"
#include "cli/progress.h"
#include "cli/run_facts.h"
#include "evidence/ab_gates.h"
#include "evidence/ab_record.h"
#include "measure/bench_record.h"
#include "measure/model_hash.h"
#include "measure/rates_record.h"

namespace strata::cli {
namespace {

constexpr std::string_view kGroup = "Rates";
constexpr size_t kMostText = size_t{1} << 28, kMostLog = size_t{64} << 20;

constexpr std::array kOwn{
    SettingSpec{.name = "rates.lengths",
                .flags = "--lengths",
                .type = SettingType::Text,
                .default_text = "1K,4K,32K,64K,128K,256K",
                .group = kGroup,
                .help = "prompt lengths in tokens; K is 1024"},
    SettingSpec{.name = "rates.gen",
                .flags = "-n,--gen",
                .type = SettingType::Int,
                .default_text = "256",
                .min = 2,
                .max = 1048576,
                .group = kGroup,
                .help = "tokens generated after each prompt"},
    SettingSpec{.name = "rates.repetitions",
                .flags = "-r,--repetitions",
                .type = SettingType::Int,
                .default_text = "1",
                .min = 1,
                .max = 1000,
                .group = kGroup,
                .help = "runs of each cell, of which the median is shown"},
    SettingSpec{.name = "rates.limit",
                .flags = "--limit",
                .type = SettingType::Real,
                .default_text = "0",
                .min = 0,
                .max = 1e7,
                .group = kGroup,
                .help = "seconds that a cell may take; what is not measured then is a dash; 0: no limit"},
    SettingSpec{.name = "rates.text",
                .flags = "-f,--file",
                .type = SettingType::Path,
                .group = kGroup,
                .help = "prompts are the tokens of this text, repeated as needed, instead of random ones",
                .persistent = false},
    SettingSpec{.name = "rates.trace_seed",
                .flags = "--trace-seed",
                .type = SettingType::Int,
                .default_text = "1",
                .min = 0,
                .max = 9007199254740992.0,
                .group = kGroup,
                .help = "of the random tokens that prompts are made of"},
    SettingSpec{.name = "rates.warmup",
                .flags = "--warmup",
                .type = SettingType::Bool,
                .default_text = "true",
                .group = kGroup,
                .help = "a short run first, so that weights are in memory"},
    SettingSpec{.name = "rates.name",
                .flags = "--name",
                .type = SettingType::Text,
                .group = kGroup,
                .help = "keep a record, RECORDS/rates/NAME.json, and the raw log of each cell beside it",
                .persistent = false},
    SettingSpec{.name = "rates.merge",
                .flags = "--merge",
                .type = SettingType::Bool,
                .default_text = "false",
                .group = kGroup,
                .help = "make one table of records instead of measuring; they have to be of one build and device",
                .persistent = false},
    SettingSpec{.name = "rates.format",
                .flags = "-o,--output",
                .type = SettingType::Choice,
                .default_text = "md",
                .choices = "md|json",
                .group = kGroup,
                .help = "form of the tables"},
};

void print_tables(const Settings& settings, const std::vector<RatesRecord>& records) {
  const bool json = settings.get_bool("json") || settings.get_text("rates.format") == "json";
  fmt::print("{}", json ? rates_json(records) : rates_markdown(records));
}

int merge(CommandContext& context) {
  if (context.arguments.empty()) throw Error(ErrorKind::Usage, "give the records to merge", "--merge");
  std::vector<RatesRecord> records;
  for (const std::string& path : context.arguments) {
    records.push_back(read_rates_record(path));
    for (const RatesCell& cell : records.back().cells) {
      const std::string log = rates_log_path(path, cell.length);
      std::error_code ignored;
      if (std::filesystem::exists(log, ignored))
        check_rates_log(cell, read_file(log, kMostLog), log);
      else
        context.log.warn("there is no raw log " + log + ": the cell is taken as it stands");
    }
  }
  check_same_table(records);
  print_tables(context.settings, records);
  return 0;
}

// The record and its logs; nothing without --name.
class Keeper {
 public:
  explicit Keeper(const Settings& settings) : name_(settings.get_text("rates.name")) {
    if (name_.empty()) return;
    check_record_name(name_);
    path_ = rates_record_path(records_folder(settings), name_);
    std::error_code failed;
    if (std::filesystem::exists(path_, failed))
      throw Error(ErrorKind::Usage, "there is a record of this name: choose another --name", path_);
    std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), failed);
    if (failed) throw Error(ErrorKind::File, "cannot create the folder: " + failed.message(), path_);
  }

  const std::string& name() const { return name_; }
  const std::string& path() const { return path_; }

  void begin(const RatesRecord& record, const RatesCell& cell) {
    if (path_.empty() || open_ == cell.length) return;
    open_ = cell.length;
    log_ = std::ofstream(rates_log_path(path_, cell.length), std::ios::trunc);
    line(fmt::format("strata rates, {}, length {}", utc_text(), cell.length));
    for (const NamedValues* values : {&record.model, &record.settings, &record.facts})
      for (const auto& [name, value] : *values) line(name + ": " + value);
    line("prompts: " + record.prompt);
  }
  void line(const std::string& text) {
    if (path_.empty()) return;
    log_ << text << '\n' << std::flush;
    if (!log_) throw Error(ErrorKind::File, "cannot write; is the disk full?", rates_log_path(path_, open_));
  }
  void save(const RatesRecord& record) const {
    if (!path_.empty()) write_text_file(path_, rates_record_text(record));
  }

 private:
  std::string name_, path_;
  int64_t open_ = 0;
  std::ofstream log_;
};

class RatesCommand {
 public:
  explicit RatesCommand(CommandContext& context)
      : context_(context),
        settings_(context.settings),
        plan_(plan_of(settings_)),
        keeper_(settings_),
        engine_(engine_options(settings_), context.log) {}

  int run() {
    std::vector<int32_t> text;
    describe_run(text);
    GenerateRequest drafts;
    set_generation(settings_, drafts);
    if (drafts.draft == DraftKind::Mtp && engine_.model().spec().mtp_layers < 1)
      throw Error(ErrorKind::Model, "this model has no MTP block to draft with (--draft mtp)");
    run_rates(engine_, plan_, drafts, text, hooks());
    progress_.clear();
    record_.facts.emplace_back("ended", utc_text());
    for (const ArmChoice& arm : engine_.queue().arms())
      if (!arm.ran.empty()) record_.facts.emplace_back("arm." + arm.op, arm.ran);
    if (context_.interrupted) record_.stopped = "interrupted";
    keeper_.save(record_);
    print_tables(settings_, {record_});
    return finish();
  }

 private:
  static RatesPlan plan_of(const Settings& settings) {
    RatesPlan plan;
    plan.lengths = parse_lengths(settings.get_text("rates.lengths"), "--lengths");
    plan.generate = settings.get_int("rates.gen");
    plan.repetitions = settings.get_int("rates.repetitions");
    plan.limit = settings.get_real("rates.limit");
    plan.seed = static_cast<uint64_t>(settings.get_int("rates.trace_seed"));
    plan.warm_up = settings.get_bool("rates.warmup");
    return plan;
  }

  void describe_run(std::vector<int32_t>& text) {
    record_.name = keeper_.name();
    record_.plan = plan_;
    record_.prompt = fmt::format("random tokens of seed {}", plan_.seed);
    if (const std::string& path = settings_.get_text("rates.text"); !path.empty()) {
      text = engine_.tokenizer().encode(read_file(path, kMostText));
      if (text.empty()) throw Error(ErrorKind::Usage, "holds no text", path);
      record_.prompt = fmt::format("a text of {} tokens, {}, repeated as needed", text.size(),
                                   hash_hex(hash64(text.data(), text.size() * sizeof(int32_t))));
    }
    const Model& model = engine_.model();
    const BenchModel described = describe_bench_model(model, engine_.options().model);
    record_.model = {{"file", std::filesystem::path(described.file).filename().string()},
                     {"hash", hash_hex(model_hash(model.file()))},
                     {"type", described.type},
                     {"bytes", std::to_string(described.bytes)},
                     {"parameters", std::to_string(described.parameters)}};
    record_.settings = given_settings(settings_);
    record_.facts = run_facts(engine_.queue());
    record_.facts.emplace_back("threads", std::to_string(engine_.queue().pool().threads()));
  }

  RatesHooks hooks() {
    RatesHooks hooks;
    hooks.interrupted = &context_.interrupted;
    hooks.progress = [this](const RatesCell& cell, int64_t run, const char* what, int64_t done, int64_t total) {
      if (!progress_.due()) return;
      const std::string runs = plan_.repetitions > 1 ? fmt::format(", run {} of {}", run, plan_.repetitions) : "";
      progress_.show(fmt::format("cell {} of {}: {}{}: {} {} of {}", record_.cells.size() + 1, plan_.lengths.size(),
                                 length_text(cell.length), runs, what, done, total));
    };
    hooks.ran = [this](const RatesCell& cell, const std::vector<int32_t>& output) {
      keeper_.begin(record_, cell);
      keeper_.line(rates_run_line(cell, cell.runs.size() - 1));
      keeper_.line(fmt::format("tokens: {}", fmt::join(output, ",")));
    };
    hooks.cell = [this](const RatesCell& cell) {
      keeper_.begin(record_, cell);
      if (!cell.missing.empty()) keeper_.line(rates_missing_line(cell));
      record_.cells.push_back(cell);
      RatesRecord so_far = record_;
      so_far.stopped = "killed after this cell";
      keeper_.save(so_far);
    };
    return hooks;
  }

  int finish() {
    size_t measured = 0, failed = 0;
    for (const RatesCell& cell : record_.cells) {
      measured += prompt_rate(cell) ? 1 : 0;
      failed += cell.failed ? 1 : 0;
    }
    if (context_.interrupted) {
      context_.interrupted = false;  // handled: what was measured is kept
      context_.log.warn(fmt::format("interrupted: {} of {} cells were measured{}", measured, record_.cells.size(),
                                    keeper_.path().empty() ? ", not kept (--name)" : " and kept in " + keeper_.path()));
      return exit_code(ErrorKind::Interrupted);
    }
    if (failed > 0) return 1;
    return measured > 0 ? 0 : exit_code(ErrorKind::Evidence);
  }

  CommandContext& context_;
  const Settings& settings_;
  const RatesPlan plan_;
  Keeper keeper_;
  Engine engine_;
  RatesRecord record_;
  Progress progress_;
};

int run(CommandContext& context) {
  if (context.settings.get_bool("rates.merge")) return merge(context);
  if (!context.arguments.empty())
    throw Error(ErrorKind::Usage, "records are given to --merge alone; -m names the model to measure");
  return RatesCommand(context).run();
}

}  // namespace

Command rates_command() {
  Command command{.name = "rates",
                  .summary = "Measure prompt and output rates over prompt lengths, or merge such records into a table.",
                  .own = kOwn,
                  .settings = engine_setting_names(),
                  .positional = {"RECORD", "with --merge: records of rates", 0, 64},
                  .run = run};
  std::erase(command.settings, "ctx_size");  // a cell takes what its prompt and output need
  command.settings.insert(command.settings.end(), {"draft", "draft_max", "records", "json"});
  return command;
}

}  // namespace strata::cli
