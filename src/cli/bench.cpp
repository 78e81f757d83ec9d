// strata bench. Here: --op, arms side by side, and what the machine can do at most.
#include "evidence/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "cli/bench_settings.h"
#include "cli/commands.h"
#include "cli/common_settings.h"
#include "cli/evidence_settings.h"
#include "cli/progress.h"
#include "evidence/device_ceilings.h"

namespace strata::cli {
namespace {

constexpr std::string_view kCeilings = "ceilings";  // in the place of an operator

std::string short_time(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.2f} us", seconds * 1e6);
  return seconds < 1 ? fmt::format("{:.3f} ms", seconds * 1e3) : fmt::format("{:.3f} s", seconds);
}

std::string difference_text(const BenchResult& result) {
  if (result.differing == 0) return "same bits";
  if (result.difference < 0) return fmt::format("{} differ", result.differing);
  return fmt::format("{:.3f} B", result.difference);
}

// The cells of one row, as text for a table.
std::vector<std::string> cells_of(const BenchResult& result) {
  if (!result.refusal.empty()) return {result.op, result.arm, result.shape, "-", "-", "-", "-", "-", result.refusal};
  return {result.op,
          result.arm,
          result.shape,
          short_time(result.median),
          fmt::format("{:.0f} %", (result.slowest - result.fastest) / result.median * 100),
          fmt::format("{:.2f}", result.bytes_per_second * 1e-9),
          fmt::format("{:.2f}", result.operations_per_second * 1e-9),
          fmt::format("{:.1f} % {}", result.share * 100, result.memory_bound ? "memory" : "peak"),
          difference_text(result)};
}

const std::vector<std::string> kHeader{"operator", "arm",     "shape",    "median",      "spread",
                                       "GB/s",     "GFLOP/s", "share of", "to the first"};

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

void print_row(const std::string& format, const std::vector<std::string>& cells) {
  constexpr int kWidths[] = {-18, -12, -46, 11, 7, 8, 9, 14, 0};
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (format == "csv")
      line += (i == 0 ? "" : ",") + csv_cell(cells[i]);
    else if (format == "md")
      line += "| " + cells[i] + " ";
    else if (kWidths[i] < 0)
      line += fmt::format("{:<{}} ", cells[i], -kWidths[i]);
    else
      line += fmt::format("{:>{}} ", cells[i], kWidths[i]);
  }
  if (format == "md") line += "|";
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

nlohmann::ordered_json json_row(const BenchResult& result, int threads) {
  nlohmann::ordered_json row{
      {"operator", result.op}, {"arm", result.arm}, {"shape", result.shape}, {"threads", threads}};
  if (!result.refusal.empty()) {
    row["refused"] = result.refusal;
    return row;
  }
  row.update({{"median_s", result.median},
              {"fastest_s", result.fastest},
              {"slowest_s", result.slowest},
              {"samples", result.samples},
              {"repetitions", result.repetitions},
              {"bytes_per_s", result.bytes_per_second},
              {"operations_per_s", result.operations_per_second},
              {"share", result.share},
              {"bound_by", result.memory_bound ? "memory" : "peak"},
              {"differing", result.differing}});
  if (result.difference >= 0) row["difference_bounds"] = result.difference;
  return row;
}

nlohmann::ordered_json json_of(const Ceilings& ceilings) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Ceiling& one : ceilings.list)
    rows.push_back({{"name", one.name},
                    {"class", one.device_class},
                    {one.bytes ? "bytes_per_s" : "operations_per_s", one.per_second},
                    {"threads", ceilings.threads}});
  return rows;
}

void print_ceilings(const Ceilings& ceilings, const std::string& format) {
  if (format == "json") return;
  const char* mark = format == "csv" || format == "md" ? "" : "# ";
  if (format == "md") fmt::print("| ceiling | class | {} threads |\n|---|---|---:|\n", ceilings.threads);
  for (const Ceiling& one : ceilings.list) {
    const std::string value = fmt::format("{:.1f} {}", one.per_second * 1e-9, one.bytes ? "GB/s" : "GFLOP/s");
    if (format == "csv")
      fmt::print("ceiling,{},{},{}\n", one.name, one.device_class, value);
    else if (format == "md")
      fmt::print("| {} | {} | {} |\n", one.name, one.device_class, value);
    else
      fmt::print("{}{:<22} {:<16} {:>16}\n", mark, one.name, one.device_class, value);
  }
  fmt::print("\n");
}

std::vector<BenchResult> bench_operator(CommandContext& context, const OperatorEvidence& evidence,
                                        const std::vector<ArmInfo>& arms, const Ceilings& ceilings,
                                        const BenchOptions& options, const std::string& format, Progress& progress) {
  const std::vector<std::string>& wanted = context.settings.get_texts("bench.shape");
  std::vector<BenchResult> all;
  const bool accelerated = options.accelerator != nullptr && evidence.device_shapes != nullptr;
  const auto shapes = accelerated ? evidence.device_shapes() : evidence.shapes();
  size_t count = 0;
  for (const auto& make : shapes) {
    if (context.interrupted) break;
    progress.show(fmt::format("{}: shape {} of {}", evidence.op, ++count, shapes.size()));
    BenchShape shape = make();
    const auto has = [&](const std::string& part) { return shape.name.find(part) != std::string::npos; };
    if (!wanted.empty() && std::none_of(wanted.begin(), wanted.end(), has)) continue;
    for (BenchResult& result : run_bench(evidence.op, arms, shape, ceilings, options)) {
      progress.clear();
      if (format != "json") print_row(format, cells_of(result));
      all.push_back(std::move(result));
    }
  }
  return all;
}

// The operators that --op names and that have shapes, each with the arms that --arm leaves.
std::vector<std::pair<const OperatorEvidence*, std::vector<ArmInfo>>> chosen_operators(const Settings& settings,
                                                                                       const Accelerator* accelerator) {
  std::vector<std::pair<const OperatorEvidence*, std::vector<ArmInfo>>> list;
  for (const Chosen& chosen : arms_of(chosen_arms(settings), accelerator)) {
    if (chosen.evidence->shapes == nullptr) continue;
    if (list.empty() || list.back().first != chosen.evidence) list.push_back({chosen.evidence, {}});
    list.back().second.push_back(chosen.arm);
  }
  if (list.empty())
    throw Error(ErrorKind::Usage, "operator " + settings.get_text("op") +
                                      " has no shapes to time; --op ceilings, all and " +
                                      "operators with shapes can be timed");
  return list;
}

std::string operator_format(const Settings& settings) {
  const std::string& format = settings.get_text("bench.format");
  if (settings.get_bool("json")) return "json";
  if (format == "jsonl" || format == "sql" || format == "none")
    throw Error(ErrorKind::Usage, "is a format of model benchmarks; with --op: table, md, csv or json", "-o " + format);
  return format == "auto" ? "table" : format;
}

int one_thread_count(const Settings& settings) {
  if (settings.origin("bench.threads") == SettingOrigin::Default) return static_cast<int>(settings.get_int("threads"));
  const std::vector<int64_t> threads = settings.get_ints("bench.threads");
  if (threads.size() != 1) throw Error(ErrorKind::Usage, "give one number of threads with --op", "-t");
  return static_cast<int>(threads.front());
}

}  // namespace

BenchOptions operator_options(CommandContext& context) {
  Settings& settings = context.settings;
  BenchOptions options;
  const auto cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  options.threads = one_thread_count(settings) > 0 ? one_thread_count(settings) : cores;
  options.samples = static_cast<int>(settings.get_int("bench.samples"));
  const std::vector<std::string>& arm = settings.get_texts("bench.arm");
  if (arm.size() > 1) throw Error(ErrorKind::Usage, "give one arm with --op", "--arm");
  options.default_arm = !arm.empty() && arm.front() == "default";
  if (!arm.empty() && !options.default_arm) settings.set("only_arm", arm.front(), SettingOrigin::Flag, "--arm");
  options.cpu = allowed_cpu(settings);
  options.accelerator = chosen_accelerator(settings);
  options.cancelled = [&] { return context.interrupted.load(); };
  return options;
}

int bench_operators(CommandContext& context) {
  const Settings& settings = context.settings;
  const std::string format = operator_format(settings);
  const BenchOptions options = operator_options(context);
  const bool only_ceilings = settings.get_text("op") == kCeilings;
  const Accelerator* const accelerator = options.accelerator.get();
  const auto operators =
      only_ceilings ? decltype(chosen_operators(settings, nullptr)){} : chosen_operators(settings, accelerator);
  Ceilings ceilings;
  if (options.accelerator != nullptr) {
    Queue queue(options.accelerator, context.log);
    ceilings = measure_device_ceilings(queue);
  } else {
    ThreadPool pool(options.threads);
    ceilings = measure_ceilings(pool, options.cpu);
  }
  print_ceilings(ceilings, format);
  if (!only_ceilings && format != "json") print_row(format, kHeader);
  if (!only_ceilings && format == "md") fmt::print("|---|---|---|---:|---:|---:|---:|---:|---|\n");
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  bool measured = only_ceilings;
  Progress progress;
  for (const auto& [evidence, arms] : operators)
    for (const BenchResult& result : bench_operator(context, *evidence, arms, ceilings, options, format, progress)) {
      measured = measured || result.refusal.empty();
      rows.push_back(json_row(result, options.threads));
    }
  if (format == "json")
    fmt::print("{}\n", nlohmann::ordered_json{{"ceilings", json_of(ceilings)}, {"results", rows}}.dump(2));
  if (context.interrupted) throw Error(ErrorKind::Interrupted, "interrupted; what was measured is printed");
  return measured ? 0 : exit_code(ErrorKind::Evidence);
}

Command bench_command() {
  return {
      .name = "bench",
      .summary = "Time a model as llama-bench does, or with --op an operator's arms side by side, --suite all weights.",
      .own = bench_settings(),
      .settings = bench_shared_settings(),
      .run = [](CommandContext& context) {
        if (context.settings.get_bool("bench.suite")) return bench_suite(context);
        return context.settings.get_text("op").empty() ? bench_models(context) : bench_operators(context);
      }};
}

}  // namespace strata::cli
