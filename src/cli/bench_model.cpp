// strata bench -m: a whole model, with the flags, names and outputs of llama-bench.
#include <fmt/format.h>

#include <chrono>
#include <ctime>
#include <thread>

#include "base/error.h"
#include "base/mapped_file.h"
#include "cli/bench_plan.h"
#include "cli/bench_settings.h"
#include "cli/commands.h"
#include "cli/model_settings.h"
#include "cli/progress.h"
#include "cli/run_facts.h"
#include "cli/version.h"
#include "evidence/statistics.h"
#include "measure/bench_record.h"
#include "measure/model_bench.h"
#include "measure/page_cache.h"

namespace strata::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kColdShare = 0.02;  // of a file's pages that may be in memory at a cold start
constexpr size_t kMostText = size_t{1} << 28;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

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
    groups_ = plan_model_bench(settings_);
    const std::string format = settings_.get_bool("json") ? "json" : settings_.get_text("bench.format");
    const std::vector<BenchRow> planned = planned_rows();
    total_ = planned.size();
    const BenchMachine here = machine();
    out_.emplace(format_named(format), here, planned);
    if (!settings_.get_text("bench.save").empty()) save_.emplace(BenchFormat::Json, here, planned);
    err_.emplace(format_named(settings_.get_text("bench.format_err")), here, planned);
    sweep_table_ = settings_.get_bool("bench.sweep") && format_named(format) == BenchFormat::Markdown;
    try {
      for (const BenchGroup& group : groups_)
        if (!context_.interrupted) run_group(group);
    } catch (...) {
      if (begun_) end();  // what was measured before is complete
      throw;
    }
    end();
    if (!context_.interrupted) return 0;
    fmt::print(stderr, "strata: interrupted: {} of {} tests are complete{}\n", done_, total_,
               partial_.empty() ? "" : ", " + partial_);
    return exit_code(ErrorKind::Interrupted);
  }

 private:
  BenchMachine machine() const {
    const DeviceInfo cpu = list_devices().front();
    const std::string& device = settings_.get_text("device");
    return {build_commit(),
            build_number(),
            version_text(),
            cpu.description,
            cpu.cores,
            device,
            device == "cpu" ? std::string() : open_accelerator(device)->info().description};
  }

  std::string usual_state() const { return cold_ ? "cold" : settings_.get_bool("bench.warmup") ? "warm" : "as found"; }

  std::vector<BenchRow> planned_rows() const {
    std::vector<BenchRow> rows;
    for (const BenchGroup& group : groups_)
      for (const ModelTest& test : group.tests) rows.push_back(row_of(group, test));
    return rows;
  }

  std::string load_mode() const {
    const std::vector<std::string>& modes = settings_.get_texts("bench.lm");
    return !modes.empty() && modes.back() == "populate" ? "populate" : "mmap";
  }

  // What the tests of a group share.
  BenchRow row_of(const BenchGroup& group, const ModelTest& test) const {
    BenchRow row{.model = group.description, .test = test};
    row.cpu_mask = group.cpu_mask;
    row.cpu_strict = settings_.get_text("cpu_strict") == "1";
    row.load_mode = load_mode();
    row.state = usual_state();
    return row;
  }

  struct Loaded {
    std::unique_ptr<Engine> engine;
    double seconds = 0, cached = 0;  // share of the file in memory before
  };

  Loaded load(const BenchGroup& group, bool drop) {
    settings_.set("model", group.model, SettingOrigin::Flag, "-m");
    settings_.set("cpu_mask", group.cpu_mask, SettingOrigin::Flag, "-C");
    settings_.set("load_mode", load_mode(), SettingOrigin::Flag, "-lm");
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
                [this, name](const BenchProgress& now) {
                  if (!progress_.due()) return;
                  const std::string round =
                      now.round == 0 ? std::string("warm-up") : fmt::format("run {} of {}", now.round, now.rounds);
                  progress_.show(fmt::format("test {} of {}: {}: {}, {} {} of {}", done_ + 1, total_, name, round,
                                             now.what, now.done, now.total));
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

  void run_group(const BenchGroup& group) {
    std::optional<Loaded> loaded;
    std::optional<ModelBench> bench;
    if (!cold_) {
      loaded = load(group, false);
      bench.emplace(*loaded->engine, hooks(""), trace_of(*loaded->engine));
    }
    for (const ModelTest& test : group.tests) {
      if (context_.interrupted) return;
      BenchRow row = row_of(group, test);
      row.time = now_text();
      begin_test(test_name(test));
      if (settings_.get_bool("bench.sweep")) {
        sweep(row, group.depths, *loaded, *bench);
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
  void run_cold(const BenchGroup& group, BenchRow& row) {
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
    if (row.result.seconds.empty()) return;
    print(out_->row(row), err_->row(row));
    keep(&row);
  }

  void sweep(const BenchRow& row, const std::vector<int64_t>& depths, Loaded& loaded, ModelBench& bench) {
    const bool given = settings_.origin("bench.repetitions") != SettingOrigin::Default;
    bench.set_hooks(hooks("sweep"));
    SweepLine line;
    if (total_ > 1) line.name = row.model.type + ", " + sweep_name(row, *loaded.engine);
    if (sweep_table_) print(sweep_title(row, *loaded.engine) + sweep_head(), "");
    const bool complete =
        bench.sweep(row.test, depths, given ? repetitions() : 1, settings_.get_bool("bench.warmup"),
                    [&](const ModelBench::Point& point) {
                      line.points.push_back(point);
                      for (const auto& [test, result] : {std::pair(&point.prompt, &point.prompt_result),
                                                         std::pair(&point.output, &point.output_result)}) {
                        if (result->seconds.empty()) continue;
                        BenchRow part = row;
                        part.test = *test;
                        part.result = *result;
                        part.load_seconds = loaded.seconds;
                        note_engine(*loaded.engine, part);
                        keep(&part);
                        print(sweep_table_ ? std::string() : out_->row(part), err_->row(part));
                      }
                      if (sweep_table_) print(sweep_row(point), "");
                    });
    if (complete)
      ++done_;
    else
      partial_ = fmt::format("a sweep with {} of {} points", line.points.size(), depths.size());
    sweeps_.push_back(std::move(line));
  }

  std::string sweep_name(const BenchRow& row, Engine& engine) const {
    std::string name =
        fmt::format("{} threads, n_ubatch {}, {}/{}", engine.queue().pool().threads(), row.test.micro_batch,
                    type_text(row.test.caches.keys), type_text(row.test.caches.values));
    if (row.test.chosen) name += fmt::format(", draft {}", draft_name(row.test.drafts.kind));
    return name;
  }

  std::string sweep_title(const BenchRow& row, Engine& engine) const {
    return fmt::format("{}{}, {}, {}\n\n", sweeps_.empty() ? "" : "\n", row.model.type, sweep_name(row, engine),
                       row.state);
  }

  // A row, or the end, for --save.
  void keep(const BenchRow* row) {
    if (!save_) return;
    if (saved_.empty()) saved_ = save_->head();
    saved_ += row != nullptr ? save_->row(*row) : save_->foot();
    if (row == nullptr) write_text_file(settings_.get_text("bench.save"), saved_);
  }

  void save_plot() const {
    const std::string& path = settings_.get_text("bench.plot");
    if (path.empty() || sweeps_.empty()) return;
    write_text_file(path, sweep_plot(machine(), sweeps_.size() > 1 ? "" : groups_.front().description.type, sweeps_));
  }

  // Rows, after the head of their format before the first ones.
  void print(const std::string& out, const std::string& err) {
    progress_.clear();
    if (!begun_) {
      begun_ = true;
      print(sweep_table_ ? std::string() : out_->head(), err_->head());
    }
    std::fputs(out.c_str(), stdout);
    std::fflush(stdout);
    std::fputs(err.c_str(), stderr);
  }

  void end() {
    print(out_->foot(), err_->foot());
    keep(nullptr);
    save_plot();
  }

  CommandContext& context_;
  Settings& settings_;
  const bool cold_;
  bool sweep_table_ = false, begun_ = false;
  std::vector<BenchGroup> groups_;
  std::vector<SweepLine> sweeps_;
  std::optional<BenchWriter> out_, err_, save_;
  std::string saved_;
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
