// strata ab: paired trials of two settings, decided by gates that are fixed before the first run.
#include "evidence/ab.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>

#include "base/error.h"
#include "base/mapped_file.h"
#include "cli/ab_settings.h"
#include "cli/commands.h"
#include "cli/evidence_settings.h"
#include "cli/model_settings.h"
#include "cli/run_facts.h"
#include "evidence/ab_gates.h"
#include "evidence/ab_record.h"
#include "measure/ab_run.h"

namespace strata::cli {
namespace {

constexpr std::string_view kGroup = "Paired trial";
constexpr size_t kMaxLog = size_t{256} << 20;

constexpr std::array kOwn{
    SettingSpec{.name = "ab.a",
                .flags = "--a",
                .type = SettingType::Text,
                .group = kGroup,
                .help = "what side A changes, as setting=value[,...]; not set: nothing",
                .repeatable = true,
                .persistent = false},
    SettingSpec{.name = "ab.b",
                .flags = "--b",
                .type = SettingType::Text,
                .group = kGroup,
                .help = "what side B changes; gates are about its speed against that of A",
                .repeatable = true,
                .persistent = false},
    SettingSpec{.name = "ab.gate",
                .flags = "--gate",
                .type = SettingType::Text,
                .group = kGroup,
                .help = "what decides, fixed before the first run: [holdout] prefill|decode[@LENGTH]>=CHANGE%; without "
                        "a length it has to hold at every one",
                .repeatable = true,
                .persistent = false},
    SettingSpec{.name = "ab.lengths",
                .flags = "--lengths",
                .type = SettingType::Text,
                .default_text = "1K,4K",
                .group = kGroup,
                .help = "prompt lengths in tokens; K is 1024"},
    SettingSpec{.name = "ab.pairs",
                .flags = "--pairs",
                .type = SettingType::Int,
                .default_text = "5",
                .min = 1,
                .max = 1000,
                .group = kGroup,
                .help = "pairs at each length, spread over the whole trial"},
    SettingSpec{.name = "ab.slots",
                .flags = "--slots",
                .type = SettingType::Int,
                .default_text = "2",
                .min = 1,
                .max = 100,
                .group = kGroup,
                .help = "runs of both sides in a pair, in alternating order"},
    SettingSpec{.name = "ab.gen",
                .flags = "--gen",
                .type = SettingType::Int,
                .default_text = "64",
                .min = 1,
                .max = 1048576,
                .group = kGroup,
                .help = "tokens generated after each prompt"},
    SettingSpec{.name = "ab.retries",
                .flags = "--retries",
                .type = SettingType::Int,
                .default_text = "3",
                .min = 0,
                .max = 100,
                .group = kGroup,
                .help = "times that a failed attempt is repeated; each is declared"},
    SettingSpec{.name = "ab.confidence",
                .flags = "--confidence",
                .type = SettingType::Real,
                .default_text = "0.95",
                .min = 0.5,
                .max = 0.999,
                .group = kGroup,
                .help = "of the interval of the median; each end errs with half of the rest at most"},
    SettingSpec{.name = "ab.outputs",
                .flags = "--outputs",
                .type = SettingType::Choice,
                .default_text = "auto",
                .choices = "auto|same|report",
                .group = kGroup,
                .help = "same: outputs that differ void the trial; auto: so where no setting that differs may change "
                        "a result"},
    SettingSpec{.name = "ab.aa",
                .flags = "--aa",
                .type = SettingType::Bool,
                .default_text = "false",
                .group = kGroup,
                .help = "a trial of equal sides, to see what the machine does: it may not find a gain",
                .persistent = false},
    SettingSpec{.name = "ab.trace_seed",
                .flags = "--trace-seed",
                .type = SettingType::Int,
                .default_text = "1",
                .min = 0,
                .max = 9007199254740992.0,
                .group = kGroup,
                .help = "of the random tokens that prompts are made of"},
    SettingSpec{.name = "ab.name",
                .flags = "--name",
                .type = SettingType::Text,
                .group = kGroup,
                .help = "keep a record, RECORDS/ab/NAME.json, and the raw log beside it",
                .persistent = false},
    SettingSpec{.name = "ab.plot",
                .flags = "--plot",
                .type = SettingType::Path,
                .group = kGroup,
                .help = "draw the ratios of all pairs into this SVG file",
                .persistent = false},
    SettingSpec{.name = "ab.replay",
                .flags = "--replay",
                .type = SettingType::Path,
                .group = kGroup,
                .help = "judge the cells of a record again instead of running anything",
                .persistent = false},
};

AbPlan plan_of(const Settings& settings, const AbSides& sides) {
  AbPlan plan;
  plan.model = model_path(settings);
  plan.settings = sides.shared;
  plan.overrides = sides.overrides;
  plan.lengths = parse_lengths(settings.get_text("ab.lengths"), "--lengths");
  plan.pairs = settings.get_int("ab.pairs");
  plan.slots = settings.get_int("ab.slots");
  plan.generate = settings.get_int("ab.gen");
  plan.retries = settings.get_int("ab.retries");
  plan.seed = settings.get_int("ab.trace_seed");
  plan.confidence = settings.get_real("ab.confidence");
  plan.same_bits =
      settings.get_text("ab.outputs") == "same" || (settings.get_text("ab.outputs") == "auto" && sides.same_bits);
  plan.same_sides = settings.get_bool("ab.aa");
  for (const std::string& text : settings.get_texts("ab.gate")) {
    const std::vector<AbGate> gates = parse_gates(text, "--gate");
    plan.gates.insert(plan.gates.end(), gates.begin(), gates.end());
  }
  return plan;
}

// The record and its raw log while the trial runs; nothing without --name.
class Keeper {
 public:
  explicit Keeper(const Settings& settings) : name_(settings.get_text("ab.name")) {
    if (name_.empty()) return;
    check_record_name(name_);
    path_ = ab_record_path(records_folder(settings), name_);
    std::error_code failed;
    if (std::filesystem::exists(path_, failed))
      throw Error(ErrorKind::Usage,
                  "there is a record of this name: choose another --name, for a trial is not repeated "
                  "until it passes",
                  path_);
  }

  const std::string& path() const { return path_; }
  std::string title() const { return name_.empty() ? "paired trial" : name_; }

  // The plan is on disk before the first run.
  void begin(const AbTrial& trial) {
    if (path_.empty()) return;
    std::error_code failed;
    std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), failed);
    if (failed) throw Error(ErrorKind::File, "cannot create the folder: " + failed.message(), path_);
    log_.open(log_path(), std::ios::trunc);
    line("strata ab, " + utc_text());
    line(plan_line(trial.plan));
    for (const auto& [name, value] : trial.facts) line(name + ": " + value);
    save(trial);
  }
  void line(const std::string& text) {
    if (path_.empty()) return;
    log_ << text << '\n' << std::flush;
    if (!log_) throw Error(ErrorKind::File, "cannot write; is the disk full?", log_path());
  }
  void save(const AbTrial& trial) const {
    if (!path_.empty()) write_text_file(path_, ab_record_text(trial, judge(trial)));
  }

 private:
  std::string log_path() const { return path_.substr(0, path_.size() - 5) + ".log"; }

  std::string name_, path_;
  std::ofstream log_;
};

// On a terminal: a line that overwrites itself, a few times a second.
class Progress {
 public:
  void show(int64_t run, int64_t runs, const std::string& what) {
    if (::isatty(STDERR_FILENO) == 0) return;
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < std::chrono::milliseconds(200)) return;
    last_ = now;
    fmt::print(stderr, "{:<70.70}\r", fmt::format("{} of {} runs | {}", run, runs, what));
  }
  ~Progress() {
    if (last_ != std::chrono::steady_clock::time_point{}) fmt::print(stderr, "{:70}\r", "");
  }

 private:
  std::chrono::steady_clock::time_point last_;
};

void print_result(const Settings& settings, const AbTrial& trial, const std::string& title) {
  const AbJudgement judgement = judge(trial);
  const std::string text =
      settings.get_bool("json") ? ab_record_text(trial, judgement) : ab_report_text(trial, judgement);
  fmt::print("{}", text);
  if (const std::string& plot = settings.get_text("ab.plot"); !plot.empty())
    write_text_file(plot, ab_report_svg(trial, judgement, title));
}

int replay(CommandContext& context, const std::string& path) {
  const AbRecord record = read_ab_record(path);
  const std::filesystem::path log = std::filesystem::path(path).replace_extension(".log");
  std::error_code ignored;
  if (std::filesystem::exists(log, ignored))
    check_raw_log(record, read_file(log.string(), kMaxLog), log.string());
  else
    context.log.warn("there is no raw log beside the record (" + log.string() + "): the cells are taken as they stand");
  print_result(context.settings, record.trial, std::filesystem::path(path).stem().string());
  const AbVerdict verdict = judge(record.trial).verdict;
  if (to_string(verdict) != record.verdict)
    throw Error(ErrorKind::Format,
                fmt::format("the cells give {}, recorded is {:.40}", to_string(verdict), record.verdict), path);
  if (!context.settings.get_bool("json")) fmt::print("the recorded verdict agrees\n");
  return exit_code(verdict);
}

void measure(CommandContext& context, AbRunner& runner, AbTrial& trial, Keeper& keeper) {
  Progress progress;
  AbHooks hooks;
  hooks.interrupted = &context.interrupted;
  hooks.cell = [&](const AbCell& cell) { keeper.line(cell_line(cell)); };
  hooks.progress = [&](int64_t run, int64_t runs, const std::string& what) { progress.show(run, runs, what); };
  keeper.begin(trial);
  runner.run(trial, hooks);
  for (const AbArmUse& use : trial.arms)
    keeper.line(fmt::format("arms {} {}@{} prefill {} decode {}", to_string(use.side), use.op, use.length, use.prefill,
                            use.decode));
  trial.facts.emplace_back("ended", utc_text());
  keeper.save(trial);
}

int run(CommandContext& context) {
  const Settings& settings = context.settings;
  if (const std::string& path = settings.get_text("ab.replay"); !path.empty()) return replay(context, path);
  const AbSides sides = ab_sides(context);
  AbTrial trial;
  trial.plan = plan_of(settings, sides);
  check_plan(trial.plan);
  Keeper keeper(settings);
  AbRunner runner(trial.plan, {sides.engine(AbSide::A), sides.engine(AbSide::B)}, context.log);
  trial.plan.model_hash = runner.model_hash();
  trial.facts = run_facts(runner.queue());
  measure(context, runner, trial, keeper);
  print_result(settings, trial, keeper.title());
  const AbVerdict verdict = judge(trial).verdict;
  if (!context.interrupted) return exit_code(verdict);
  context.interrupted = false;  // handled: what was measured is kept
  context.log.warn(fmt::format("interrupted: {} cells were measured{}", trial.cells.size(),
                               keeper.path().empty() ? ", not kept (--name)" : " and kept in " + keeper.path()));
  return exit_code(ErrorKind::Interrupted);
}

}  // namespace

Command ab_command() {
  std::vector<std::string_view> names = ab_setting_names();
  names.insert(names.end(), {"arm", "records", "json"});
  return {.name = "ab",
          .summary = "Compare two settings in paired trials; gates fixed before the first run decide.",
          .own = kOwn,
          .settings = std::move(names),
          .run = run};
}

}  // namespace strata::cli
