// strata bench --op: arms side by side, and what the machine can do at most.
#include "evidence/bench.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/common_settings.h"
#include "cli/evidence_settings.h"
#include "evidence/device_ceilings.h"

namespace strata::cli {
namespace {

constexpr std::string_view kCeilings = "ceilings";  // in the place of an operator

constexpr std::array kOwn{
    SettingSpec{.name = "bench.shape",
                .flags = "--shape",
                .type = SettingType::Text,
                .group = "Evidence",
                .help = "only shapes whose name has this in it",
                .persistent = false},
    SettingSpec{.name = "bench.samples",
                .flags = "--samples",
                .type = SettingType::Int,
                .default_text = "9",
                .min = 1,
                .max = 1000,
                .group = "Evidence",
                .help = "samples of each arm; their median is printed"},
    SettingSpec{.name = "bench.format",
                .flags = "-o,--format",
                .type = SettingType::Choice,
                .default_text = "table",
                .choices = "table|json|csv|md",
                .group = "Evidence",
                .help = "how results are written"},
};

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
                                        const BenchOptions& options, const std::string& format) {
  const std::string& wanted = context.settings.get_text("bench.shape");
  std::vector<BenchResult> all;
  const bool accelerated = options.accelerator != nullptr && evidence.device_shapes != nullptr;
  for (const auto& make : accelerated ? evidence.device_shapes() : evidence.shapes()) {
    if (context.interrupted) throw Error(ErrorKind::Interrupted, "interrupted");
    BenchShape shape = make();
    if (!wanted.empty() && shape.name.find(wanted) == std::string::npos) continue;
    for (BenchResult& result : run_bench(evidence.op, arms, shape, ceilings, options)) {
      if (format != "json") print_row(format, cells_of(result));
      all.push_back(std::move(result));
    }
  }
  return all;
}

// The operators that --op names and that have shapes, each with the arms that --arm leaves.
std::vector<std::pair<const OperatorEvidence*, std::vector<ArmInfo>>> chosen_operators(const Settings& settings) {
  std::vector<std::pair<const OperatorEvidence*, std::vector<ArmInfo>>> list;
  for (const Chosen& chosen : arms_of(chosen_arms(settings), settings.get_text("device") != "cpu")) {
    if (chosen.evidence->shapes == nullptr) continue;
    if (list.empty() || list.back().first != chosen.evidence) list.push_back({chosen.evidence, {}});
    list.back().second.push_back(chosen.arm);
  }
  if (list.empty())
    throw Error(ErrorKind::Usage, "operator " + settings.get_text("op") + " has no shapes to time; --op ceilings and " +
                                      "operators with shapes can be timed");
  return list;
}

int run(CommandContext& context) {
  const Settings& settings = context.settings;
  const std::string format = settings.get_bool("json") ? "json" : settings.get_text("bench.format");
  BenchOptions options;
  const auto cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  options.threads = settings.get_int("threads") > 0 ? static_cast<int>(settings.get_int("threads")) : cores;
  options.samples = static_cast<int>(settings.get_int("bench.samples"));
  options.cpu = allowed_cpu(settings);
  options.accelerator = chosen_accelerator(settings);
  options.cancelled = [&] { return context.interrupted.load(); };
  const bool only_ceilings = settings.get_text("op") == kCeilings;
  const auto operators = only_ceilings ? decltype(chosen_operators(settings)){} : chosen_operators(settings);
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
  for (const auto& [evidence, arms] : operators)
    for (const BenchResult& result : bench_operator(context, *evidence, arms, ceilings, options, format)) {
      measured = measured || result.refusal.empty();
      rows.push_back(json_row(result, options.threads));
    }
  if (context.interrupted) throw Error(ErrorKind::Interrupted, "interrupted");
  if (format == "json")
    fmt::print("{}\n", nlohmann::ordered_json{{"ceilings", json_of(ceilings)}, {"results", rows}}.dump(2));
  return measured ? 0 : exit_code(ErrorKind::Evidence);
}

}  // namespace

Command bench_command() {
  return {.name = "bench",
          .summary = "Time an operator's arms side by side; --op ceilings: what this machine can do at most.",
          .own = kOwn,
          .settings = {"op", "only_arm", "device", "threads", "json", "cpu.isa"},
          .run = run};
}

}  // namespace strata::cli
