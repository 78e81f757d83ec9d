// strata bench -m: a whole model, with the flags, names and outputs of llama-bench.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <thread>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/settings_text.h"
#include "cli/bench_settings.h"
#include "cli/commands.h"
#include "cli/model_settings.h"
#include "cli/progress.h"
#include "cli/version.h"
#include "evidence/statistics.h"
#include "measure/affinity.h"
#include "measure/bench_record.h"
#include "measure/model_bench.h"
#include "measure/page_cache.h"

namespace strata::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMostTests = 10000;
constexpr int64_t kSweepContext = 8192;  // of a sweep, unless -c or -d say otherwise
constexpr double kColdShare = 0.02;      // of a file's pages that may be in memory at a cold start
constexpr size_t kMostText = size_t{1} << 28;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// One load of a model and the tests to run on it.
struct Group {
  std::string model, cpu_mask{};
  int64_t threads = 0;
  BenchModel description;
  std::vector<ModelTest> tests{};
};

// A path may have commas itself: it is taken whole where such a file exists.
std::vector<std::string> model_paths(const Settings& settings) {
  std::vector<std::string> paths;
  for (const std::string& text : settings.get_texts("bench.model")) {
    std::error_code ignored;
    if (std::filesystem::exists(text, ignored))
      paths.push_back(text);
    else
      for (std::string& path : split_text(text, ',')) paths.push_back(std::move(path));
  }
  if (paths.empty()) paths.push_back(model_path(settings));
  return paths;
}

// The values of a list of this command, or, when it is not given, of the setting that other commands have.
std::vector<int64_t> numbers(const Settings& settings, const char* own, const char* shared) {
  if (settings.origin(own) == SettingOrigin::Default && settings.origin(shared) != SettingOrigin::Default)
    return {settings.get_int(shared)};
  return settings.get_ints(own);
}

std::vector<DType> cache_types(const Settings& settings, const char* own, const char* shared) {
  std::vector<std::string> names = settings.get_choices(own);
  if (settings.origin(own) == SettingOrigin::Default && settings.origin(shared) != SettingOrigin::Default)
    names = {settings.get_text(shared)};
  std::vector<DType> types;
  for (const std::string& name : names) types.push_back(dtype_from_name(name).value());
  return types;
}

std::vector<double> real_list(const std::string& text, const char* flag) {
  std::vector<double> values;
  for (const std::string& part : split_text(text, ',')) {
    double value = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (error != std::errc{} || end != part.data() + part.size() || !(value >= 0 && value <= 1))
      throw Error(ErrorKind::Usage, quoted_text(part) + " is no probability: 0 to 1, with commas between", flag);
    values.push_back(value);
  }
  return values;
}

DraftTrialOptions draft_options(const Settings& settings) {
  DraftTrialOptions options;
  options.limit = static_cast<int>(settings.get_int("draft_max"));
  options.synthetic.length = settings.get_real("bench.synth_len");
  options.synthetic.rates = real_list(settings.get_text("bench.synth_rates"), "--spec-synth-rates");
  if (options.synthetic.length > 0 && !options.synthetic.rates.empty())
    throw Error(ErrorKind::Usage, "give either --spec-synth-len or --spec-synth-rates");
  const double longest = options.limit + 1;
  if (options.synthetic.length > 0 && (options.synthetic.length < 1 || options.synthetic.length > longest))
    throw Error(ErrorKind::Usage, fmt::format("a window keeps 1 to {} tokens (draft-max + 1)", longest),
                "--spec-synth-len");
  if (options.synthetic.rates.size() > static_cast<size_t>(options.limit))
    throw Error(ErrorKind::Usage, fmt::format("has more rates than drafts ({}, draft-max)", options.limit),
                "--spec-synth-rates");
  return options;
}

std::vector<std::pair<int64_t, int64_t>> prompt_output_pairs(const Settings& settings) {
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (const std::string& text : settings.get_texts("bench.pg")) {
    const std::vector<std::string> parts = split_text(text, ',');
    int64_t values[2] = {0, 0};
    bool valid = parts.size() == 2;
    for (size_t i = 0; valid && i < 2; ++i) {
      const auto [end, error] = std::from_chars(parts[i].data(), parts[i].data() + parts[i].size(), values[i]);
      valid =
          error == std::errc{} && end == parts[i].data() + parts[i].size() && values[i] >= 0 && values[i] <= 16777216;
    }
    if (!valid) throw Error(ErrorKind::Usage, quoted_text(text) + " is no pair of lengths such as 512,128", "-pg");
    pairs.emplace_back(values[0], values[1]);
  }
  return pairs;
}

DraftKind draft_kind(const std::string& name) {
  for (const DraftKind kind : {DraftKind::None, DraftKind::Lookup, DraftKind::Mtp})
    if (name == draft_name(kind)) return kind;
  return DraftKind::Auto;
}

// Prompt and output lengths of the tests at one depth.
std::vector<std::pair<int64_t, int64_t>> lengths(const Settings& settings) {
  std::vector<std::pair<int64_t, int64_t>> list;
  for (const int64_t prompt : settings.get_ints("bench.n_prompt"))
    if (prompt > 0) list.emplace_back(prompt, 0);
  for (const int64_t output : settings.get_ints("bench.n_gen"))
    if (output > 0) list.emplace_back(0, output);
  for (const auto& [prompt, output] : prompt_output_pairs(settings))
    if (prompt + output > 0) list.emplace_back(prompt, output);
  if (list.empty()) throw Error(ErrorKind::Usage, "no test is left: give -p, -n or -pg");
  return list;
}

// Tests of one model, in the order in which they run: what a deeper test can build on comes before it.
std::vector<ModelTest> make_tests(const Settings& settings) {
  ModelTest test;
  test.caches = cache_options(settings);
  test.drafts = draft_options(settings);
  const std::vector<std::string> drafts = settings.get_choices("bench.draft");
  const bool chosen = std::any_of(drafts.begin(), drafts.end(), [](const std::string& name) { return name != "none"; });
  if (test.drafts.synthetic.given() && !chosen)
    throw Error(ErrorKind::Usage, "synthetic acceptance needs drafts: give --draft lookup or --draft mtp");
  const auto cases = lengths(settings);
  std::vector<ModelTest> tests;
  const std::vector<int64_t> micro_batches = numbers(settings, "bench.ubatch", "ubatch_size");
  const auto types_k = cache_types(settings, "bench.type_k", "cache_type_k"),
             types_v = cache_types(settings, "bench.type_v", "cache_type_v");
  for (const int64_t batch : settings.get_ints("bench.batch"))
    for (const int64_t micro_batch : micro_batches)
      for (const DType keys : types_k)
        for (const DType values : types_v)
          for (const std::string& draft : drafts)
            for (const int64_t depth : settings.get_ints("bench.n_depth"))
              for (const auto& [prompt, output] : cases) {
                if (tests.size() == kMostTests)
                  throw Error(ErrorKind::Usage, fmt::format("the lists make more than {} tests", kMostTests));
                test.batch = batch;
                test.micro_batch = micro_batch;
                test.caches.keys = keys;
                test.caches.values = values;
                test.drafts.kind = output > 0 ? draft_kind(draft) : DraftKind::None;
                test.chosen = output > 0 && chosen;
                test.depth = depth;
                test.prompt = prompt;
                test.output = output;
                if (output > 0 || draft == drafts.front()) tests.push_back(test);
              }
  return tests;
}

std::string now_text() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32] = "";
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

BenchFormat format_named(const std::string& name) {
  if (name == "csv") return BenchFormat::Csv;
  if (name == "json") return BenchFormat::Json;
  if (name == "jsonl") return BenchFormat::Jsonl;
  if (name == "sql") return BenchFormat::Sql;
  return name == "none" ? BenchFormat::None : BenchFormat::Markdown;
}

class ModelBenchCommand {
 public:
  explicit ModelBenchCommand(CommandContext& context)
      : context_(context), settings_(context.settings), cold_(settings_.get_bool("bench.cold")) {}

  int run() {
    check_foreign_flags(context_);
    check_forms();
    make_groups();
    const std::string format = settings_.get_bool("json") ? "json" : settings_.get_text("bench.format");
    const std::vector<BenchRow> planned = planned_rows();
    total_ = planned.size();
    out_.emplace(format_named(format), machine(), planned);
    err_.emplace(format_named(settings_.get_text("bench.format_err")), machine(), planned);
    sweep_table_ = settings_.get_bool("bench.sweep") && format_named(format) == BenchFormat::Markdown;
    print(sweep_table_ ? std::string() : out_->head(), err_->head());
    try {
      for (const Group& group : groups_)
        if (!context_.interrupted) run_group(group);
    } catch (...) {
      end();
      throw;
    }
    end();
    if (!context_.interrupted) return 0;
    fmt::print(stderr, "strata: interrupted: {} of {} tests are complete{}\n", done_, total_,
               partial_.empty() ? "" : ", " + partial_);
    return exit_code(ErrorKind::Interrupted);
  }

 private:
  void check_forms() const {
    const bool sweep = settings_.get_bool("bench.sweep");
    if (!settings_.get_text("bench.plot").empty() && !sweep)
      throw Error(ErrorKind::Usage, "draws a sweep: give --sweep too", "--plot");
    if (cold_ && sweep) throw Error(ErrorKind::Usage, "--cold and --sweep: a walk along a context is warm");
    for (const int64_t depth : settings_.get_ints("bench.n_depth"))
      if (cold_ && depth > 0) throw Error(ErrorKind::Usage, "--cold and -d: reading the depth warms the model");
    for (const std::string& arm : settings_.get_texts("bench.arm"))
      settings_.set("arm", arm, SettingOrigin::Flag, "--arm");
  }

  // Every test is checked before the first one runs.
  void make_groups() {
    std::vector<std::string> masks = settings_.get_texts("bench.cpu_mask");
    if (masks.empty()) masks.emplace_back("0x0");
    const std::vector<ModelTest> tests = make_tests(settings_);
    const std::vector<int64_t> threads = numbers(settings_, "bench.threads", "threads");
    for (const std::string& path : model_paths(settings_)) {
      settings_.set("model", path, SettingOrigin::Flag, "-m");
      const EngineOptions options = engine_options(settings_);
      const Model model = Model::load(path, options.rope);
      model.file().check_sizes();
      Group group{.model = path, .description = describe_bench_model(model, path)};
      for (ModelTest test : tests) {
        test.drafts.kind = resolved_draft(test.drafts.kind, model.spec());
        if (settings_.get_bool("bench.sweep")) test.depth = 0;
        check_test(test, model, options.memory_floor);
        group.tests.push_back(test);
      }
      if (settings_.get_bool("bench.sweep")) sweep_group(group, model);
      for (const std::string& mask : masks)
        for (const int64_t count : threads) {
          group.cpu_mask = mask;
          group.threads = count;
          groups_.push_back(group);
          if (groups_.size() * group.tests.size() > kMostTests)
            throw Error(ErrorKind::Usage, fmt::format("the lists make more than {} tests", kMostTests));
        }
    }
  }

  // One test for each setting, with one prompt and one output length: depths are walked.
  void sweep_group(Group& group, const Model& model) {
    const std::vector<int64_t> prompts = settings_.get_ints("bench.n_prompt"),
                               outputs = settings_.get_ints("bench.n_gen");
    if (prompts.size() != 1 || outputs.size() != 1 || !settings_.get_texts("bench.pg").empty())
      throw Error(ErrorKind::Usage, "a sweep takes one -p, one -n and no -pg");
    std::vector<ModelTest> kept;
    for (const ModelTest& test : group.tests)
      if (test.output > 0 || outputs.front() == 0) {
        kept.push_back(test);
        kept.back().prompt = prompts.front();
      }
    const auto same = [](const ModelTest& a, const ModelTest& b) {
      return a.batch == b.batch && a.micro_batch == b.micro_batch && a.caches.keys == b.caches.keys &&
             a.caches.values == b.caches.values && a.drafts.kind == b.drafts.kind;
    };
    kept.erase(std::unique(kept.begin(), kept.end(), same), kept.end());  // depths were a list too
    group.tests = kept;
    const int64_t longest = std::max(prompts.front(), outputs.front());
    depths_ = settings_.get_ints("bench.n_depth");
    std::sort(depths_.begin(), depths_.end());
    depths_.erase(std::unique(depths_.begin(), depths_.end()), depths_.end());
    if (settings_.origin("bench.n_depth") == SettingOrigin::Default) {
      int64_t end = settings_.get_int("ctx_size");
      if (end == 0) end = std::min(kSweepContext, model.spec().context);
      const int64_t step = prompts.front() > 0 ? prompts.front() : outputs.front();
      depths_.clear();
      for (int64_t depth = 0; depth + longest <= end; depth += step) {
        if (depths_.size() == kMostTests)
          throw Error(ErrorKind::Usage, fmt::format("more than {} points; ask for larger steps (-p)", kMostTests));
        depths_.push_back(depth);
      }
      if (depths_.empty())
        throw Error(ErrorKind::Usage, fmt::format("a context of {} has no room for {} tokens", end, longest), "-c");
    }
    for (ModelTest test : group.tests) {
      test.depth = depths_.back();
      (test.prompt > test.output ? test.output : test.prompt) = 0;  // they are run one after the other's end
      check_test(test, model, static_cast<uint64_t>(settings_.get_int("mem_floor")) << 20);
    }
  }

  BenchMachine machine() const {
    const DeviceInfo cpu = list_devices().front();
    return {build_commit(), build_number(), version_text(), cpu.description, cpu.cores};
  }

  std::string usual_state() const { return cold_ ? "cold" : settings_.get_bool("bench.warmup") ? "warm" : "as found"; }

  std::vector<BenchRow> planned_rows() const {
    std::vector<BenchRow> rows;
    for (const Group& group : groups_)
      for (const ModelTest& test : group.tests) {
        BenchRow row{.model = group.description, .test = test};
        row.cpu_mask = group.cpu_mask;
        row.state = usual_state();
        rows.push_back(row);
      }
    return rows;
  }

  struct Loaded {
    std::unique_ptr<Engine> engine;
    double seconds = 0, cached = 0;  // share of the file in memory before
  };

  Loaded load(const Group& group, bool drop) {
    settings_.set("model", group.model, SettingOrigin::Flag, "-m");
    settings_.set("threads", std::to_string(group.threads), SettingOrigin::Flag, "-t");
    if (drop) drop_cached_pages(group.model);
    Loaded loaded{nullptr, 0, cached_share(group.model)};
    const Clock::time_point start = Clock::now();
    loaded.engine = std::make_unique<Engine>(engine_options(settings_), context_.log);
    loaded.seconds = seconds_since(start);
    const std::string cached = loaded.cached < 0 ? "an unknown part" : fmt::format("{:.0f} %", loaded.cached * 100);
    const std::string line = fmt::format("{} loaded in {:.3f} s: {}, {} of it in memory before", group.model,
                                         loaded.seconds, size_text(group.description.bytes), cached);
    progress_.clear();
    if (drop)
      context_.log.debug(line);
    else
      context_.log.info(line);
    return loaded;
  }

  BenchHooks hooks(const std::string& name) {
    return {.cancelled = [this] { return context_.interrupted.load(); },
            .progress =
                [this, name](const char* what, int64_t done, int64_t total) {
                  if (progress_.due())
                    progress_.show(
                        fmt::format("test {} of {}: {}: {} {} of {}", done_ + 1, total_, name, what, done, total));
                }};
  }

  std::vector<int32_t> trace_of(Engine& engine) const {
    const std::string& path = settings_.get_text("bench.text");
    if (path.empty()) return {};
    std::vector<int32_t> tokens = engine.tokenizer().encode(read_file(path, kMostText));
    if (tokens.empty()) throw Error(ErrorKind::Usage, "holds no text", path);
    return tokens;
  }

  void begin_test(const std::string& name) {
    if (settings_.get_bool("bench.progress")) {
      progress_.clear();
      fmt::print(stderr, "strata bench: test {} of {}: {}\n", done_ + 1, total_, name);
    }
    if (done_ == 0) return;
    const Clock::time_point until = Clock::now() + std::chrono::seconds(settings_.get_int("bench.delay"));
    while (Clock::now() < until && !context_.interrupted) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }

  void run_group(const Group& group) {
    const CpuMask mask(group.cpu_mask);
    std::optional<Loaded> loaded;
    std::optional<ModelBench> bench;
    if (!cold_) {
      loaded = load(group, false);
      bench.emplace(*loaded->engine, hooks(""), trace_of(*loaded->engine));
    }
    for (const ModelTest& test : group.tests) {
      if (context_.interrupted) return;
      BenchRow row{.model = group.description, .test = test};
      row.cpu_mask = group.cpu_mask;
      row.state = usual_state();
      row.time = now_text();
      begin_test(test_name(test));
      if (settings_.get_bool("bench.sweep")) {
        sweep(row, *loaded, *bench);
        continue;
      }
      if (cold_) {
        run_cold(group, row);
      } else {
        bench->set_hooks(hooks(test_name(test)));
        row.load_seconds = loaded->seconds;
        row.result = bench->run(test, repetitions(), settings_.get_bool("bench.warmup"));
        note_engine(*loaded->engine, row);
      }
      finish(row);
    }
  }

  int repetitions() const { return static_cast<int>(settings_.get_int("bench.repetitions")); }

  // Every repetition is a load of its own.
  void run_cold(const Group& group, BenchRow& row) {
    std::vector<double> loads;
    double cached = 0;
    for (int i = 0; i < repetitions() && !row.result.interrupted; ++i) {
      Loaded loaded = load(group, true);
      ModelBench bench(*loaded.engine, hooks(test_name(row.test)), trace_of(*loaded.engine));
      const ModelTestResult one = bench.run(row.test, 1, false);
      row.result.interrupted = one.interrupted;
      if (one.interrupted) break;
      row.result.repeatable = row.result.repeatable && (i == 0 || one.checksum == row.result.checksum);
      row.result.checksum = one.checksum;
      row.result.state_bytes = one.state_bytes;
      row.result.seconds.push_back(one.seconds.front());
      row.result.drafts.add(one.drafts);
      loads.push_back(loaded.seconds);
      cached = std::max(cached, loaded.cached);
      note_engine(*loaded.engine, row);
    }
    row.load_seconds = mean(loads);
    if (cached >= 0 && cached <= kColdShare) return;
    row.state = "not cold";
    context_.log.warn(
        fmt::format("{}: its pages stay in memory ({:.0f} %): another program has it open, or it does "
                    "not lie on a disk",
                    group.model, cached * 100));
  }

  static void note_engine(Engine& engine, BenchRow& row) {
    row.threads = engine.queue().pool().threads();
    row.arms.clear();
    for (const ArmChoice& arm : engine.queue().arms())
      if (!arm.ran.empty()) row.arms += (row.arms.empty() ? "" : " ") + arm.op + "=" + arm.ran;
  }

  void finish(const BenchRow& row) {
    if (!row.result.repeatable)
      context_.log.warn(test_name(row.test) + ": repetitions gave different logits; this should never happen");
    if (row.result.interrupted) {
      partial_ =
          fmt::format("{} with {} of {} repetitions", test_name(row.test), row.result.seconds.size(), repetitions());
    } else {
      ++done_;
    }
    if (!row.result.seconds.empty()) print(out_->row(row), err_->row(row));
  }

  void sweep(const BenchRow& row, Loaded& loaded, ModelBench& bench) {
    const bool given = settings_.origin("bench.repetitions") != SettingOrigin::Default;
    bench.set_hooks(hooks("sweep"));
    if (sweep_table_) print(sweep_title(row) + sweep_head(), "");
    const bool complete =
        bench.sweep(row.test, depths_, given ? repetitions() : 1, settings_.get_bool("bench.warmup"),
                    [&](const ModelBench::Point& point) {
                      points_.push_back(point);
                      for (const auto& [test, result] : {std::pair(&point.prompt, &point.prompt_result),
                                                         std::pair(&point.output, &point.output_result)}) {
                        if (result->seconds.empty()) continue;
                        BenchRow part = row;
                        part.test = *test;
                        part.result = *result;
                        part.load_seconds = loaded.seconds;
                        note_engine(*loaded.engine, part);
                        print(sweep_table_ ? std::string() : out_->row(part), err_->row(part));
                      }
                      if (sweep_table_) print(sweep_row(point), "");
                    });
    if (complete)
      ++done_;
    else
      partial_ = fmt::format("a sweep with {} of {} points", points_.size(), depths_.size());
  }

  // What distinguishes a sweep from the others of this run.
  std::string sweep_title(const BenchRow& row) const {
    std::string title = done_ == 0 ? "" : "\n";
    title += fmt::format("{} | {} | n_ubatch {} | {}/{}", row.model.type, row.state, row.test.micro_batch,
                         to_string(row.test.caches.keys), to_string(row.test.caches.values));
    if (row.test.chosen) title += fmt::format(" | draft {}", draft_name(row.test.drafts.kind));
    return title + "\n\n";
  }

  void print(const std::string& out, const std::string& err) {
    progress_.clear();
    std::fputs(out.c_str(), stdout);
    std::fflush(stdout);
    std::fputs(err.c_str(), stderr);
  }

  void end() { print(out_->foot(), err_->foot()); }

  CommandContext& context_;
  Settings& settings_;
  const bool cold_;
  bool sweep_table_ = false;
  std::vector<Group> groups_;
  std::vector<int64_t> depths_;  // of a sweep
  std::vector<ModelBench::Point> points_;
  std::optional<BenchWriter> out_, err_;
  Progress progress_;
  size_t done_ = 0, total_ = 0;
  std::string partial_;
};

}  // namespace

int bench_models(CommandContext& context) {
  if (context.settings.get_bool("bench.list_devices")) return devices_command().run(context);
  return ModelBenchCommand(context).run();
}

}  // namespace strata::cli
