#include "measure/kernel_suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "evidence/statistics.h"
#include "evidence/svg_plot.h"
#include "ops/matmul/bench.h"
#include "ops/matmul/parity.h"

namespace strata {
namespace {

using nlohmann::ordered_json;

constexpr int64_t kColumns = 2048;
constexpr std::array kTypes{DType::Q8_0,   DType::Q4_0,  DType::Q4_K,    DType::Q5_K,   DType::Q6_K,
                            DType::IQ4_XS, DType::IQ3_S, DType::IQ3_XXS, DType::IQ2_XS, DType::MXFP4,
                            DType::Q2_0,   DType::F16,   DType::BF16};
constexpr std::array<int64_t, 4> kRows{1, 4, 16, 256};

// One row is bound by memory, a prompt by multiply-adds.
constexpr struct {
  DType type;
  int64_t rows;
  double share;
} kTargets[] = {{DType::Q8_0, 1, 0.85},   {DType::Q4_0, 1, 0.85},   {DType::Q4_K, 1, 0.85},
                {DType::Q6_K, 1, 0.70},   {DType::IQ4_XS, 1, 0.70}, {DType::IQ3_S, 1, 0.50},
                {DType::IQ2_XS, 1, 0.50}, {DType::Q8_0, 256, 0.60}, {DType::Q4_K, 256, 0.60}};

std::optional<double> target_of(DType type, int64_t rows) {
  for (const auto& target : kTargets)
    if (target.type == type && target.rows == rows) return target.share;
  return {};
}

BenchShape shape_of(DType type, int64_t rows) {
  BenchShape shape = matmul_shape(type, rows, kColumns, rows == 256 ? 1024 : 6144, Activations::Int8);
  shape.name = fmt::format("{}, {} rows", to_string(type), rows);
  return shape;
}

SuiteRow row_of(DType type, int64_t rows, Ceilings& before, const std::function<Ceilings()>& measure,
                const BenchOptions& options) {
  BenchShape shape = shape_of(type, rows);
  SuiteRow row;
  row.type = type;
  row.rows = rows;
  row.bytes = shape.bytes;
  row.operations = shape.operations;
  row.result = run_bench("matmul", arm_infos(matmul_arms()), shape, before, options).front();
  row.target = target_of(type, rows);
  if (row.result.median <= 0) return row;
  const Ceilings after = measure();
  row.read_bytes = (before.read_bytes + after.read_bytes) / 2;
  row.peak = (before.peak(shape.kind) + after.peak(shape.kind)) / 2;
  const double memory = row.bytes / row.read_bytes, compute = row.operations / row.peak;
  row.memory_bound = memory > compute;
  row.share = std::max(memory, compute) / row.result.median;
  before = after;
  return row;
}

// Of each ceiling the median; all measured the same ones.
Ceilings medians(const std::vector<Ceilings>& all) {
  Ceilings middle = all.front();
  const auto over_all = [&](auto&& value) {
    std::vector<double> values;
    for (const Ceilings& one : all) values.push_back(value(one));
    return median(values);
  };
  for (size_t i = 0; i < middle.list.size(); ++i)
    middle.list[i].per_second = over_all([&](const Ceilings& one) { return one.list[i].per_second; });
  for (double Ceilings::*field :
       {&Ceilings::copy_bytes, &Ceilings::read_bytes, &Ceilings::f32, &Ceilings::bf16, &Ceilings::int8})
    middle.*field = over_all([&](const Ceilings& one) { return one.*field; });
  return middle;
}

std::string holds_text(const SuiteRow& row) {
  if (!row.target) return "";
  return fmt::format("{:.0f} %: {}", *row.target * 100, row.share >= *row.target ? "holds" : "misses");
}

}  // namespace

KernelSuite run_kernel_suite(const BenchOptions& options, const std::vector<std::string>& types,
                             const std::function<void(const SuiteRow&)>& done) {
  KernelSuite suite;
  BenchOptions own = options;
  own.default_arm = true;
  ThreadPool pool(options.threads);
  std::vector<Ceilings> all;
  const auto measure = [&] {
    all.push_back(measure_ceilings(pool, options.cpu));
    suite.ceilings = medians(all);
    return all.back();
  };
  Ceilings before = measure();
  for (const DType type : kTypes) {
    const std::string name(to_string(type));
    const auto in_name = [&](const std::string& part) { return name.find(part) != std::string::npos; };
    if (!types.empty() && std::none_of(types.begin(), types.end(), in_name)) continue;
    for (const int64_t rows : kRows) {
      if (options.cancelled && options.cancelled()) return suite;
      SuiteRow row = row_of(type, rows, before, measure, own);
      if (row.result.median <= 0) return suite;  // interrupted
      done(row);
      suite.rows.push_back(std::move(row));
    }
  }
  return suite;
}

std::string suite_head() {
  return "| weights | rows | arm | median us | GB/s | Gop/s | share of | target |\n"
         "|---|---:|---|---:|---:|---:|---:|---|\n";
}

std::string suite_line(const SuiteRow& row) {
  return fmt::format("| {} | {} | {} | {:.0f} | {:.1f} | {:.0f} | {:.0f} % {} | {} |\n", to_string(row.type), row.rows,
                     row.result.arm, row.result.median * 1e6, row.bytes / row.result.median * 1e-9,
                     row.operations / row.result.median * 1e-9, row.share * 100, row.memory_bound ? "reading" : "peak",
                     holds_text(row));
}

std::string suite_json(const KernelSuite& suite) {
  ordered_json rows = ordered_json::array();
  for (const SuiteRow& row : suite.rows) {
    ordered_json one{{"weights", to_string(row.type)},
                     {"rows", row.rows},
                     {"arm", row.result.arm},
                     {"median_s", row.result.median},
                     {"fastest_s", row.result.fastest},
                     {"slowest_s", row.result.slowest},
                     {"samples", row.result.samples},
                     {"bytes", row.bytes},
                     {"operations", row.operations},
                     {"read_bytes_per_s", row.read_bytes},
                     {"peak_operations_per_s", row.peak},
                     {"bound_by", row.memory_bound ? "reading" : "peak"},
                     {"share", row.share}};
    if (row.target) one.update({{"target", *row.target}, {"holds", row.share >= *row.target}});
    rows.push_back(std::move(one));
  }
  const Ceilings& best = suite.ceilings;
  const ordered_json ceilings{
      {"threads", best.threads},          {"read_bytes_per_s", best.read_bytes}, {"copy_bytes_per_s", best.copy_bytes},
      {"f32_operations_per_s", best.f32}, {"bf16_operations_per_s", best.bf16},  {"int8_operations_per_s", best.int8}};
  return ordered_json{{"ceilings", ceilings}, {"rows", rows}}.dump(2) + "\n";
}

std::string suite_csv(const KernelSuite& suite) {
  std::string text =
      "weights,rows,arm,median_s,fastest_s,slowest_s,bytes,operations,read_bytes_per_s,peak_operations_per_s,share,"
      "target\n";
  for (const SuiteRow& row : suite.rows)
    text += fmt::format("{},{},{},{:.4g},{:.4g},{:.4g},{},{},{:.4g},{:.4g},{:.4f},{}\n", to_string(row.type), row.rows,
                        row.result.arm, row.result.median, row.result.fastest, row.result.slowest, row.bytes,
                        row.operations, row.read_bytes, row.peak, row.share,
                        row.target ? fmt::format("{}", *row.target) : "");
  return text;
}

std::string roofline_svg(const KernelSuite& suite) {
  LineChart chart;
  const Ceilings& best = suite.ceilings;
  chart.title = "Products with weights under the roofs of this machine";
  chart.subtitle =
      fmt::format("{} threads, at 1, 4, 16 and 256 rows; read {:.1f} GB/s, int8 {:.2f} Top/s, f32 {:.2f} Top/s",
                  best.threads, best.read_bytes * 1e-9, best.int8 * 1e-12, best.f32 * 1e-12);
  chart.x = {.label = "operations a byte", .scale = AxisScale::Log2};
  chart.y = {.label = "Gop/s", .scale = AxisScale::Log2};
  double first = 0, last = 0;
  for (const SuiteRow& row : suite.rows) {
    first = first == 0 ? row.intensity() : std::min(first, row.intensity());
    last = std::max(last, row.intensity());
  }
  for (const auto& [name, peak] : {std::pair{"roof, int8", best.int8}, std::pair{"roof, f32", best.f32}})
    if (last > 0)
      chart.series.push_back({name,
                              {{first, first * best.read_bytes * 1e-9},
                               {peak / best.read_bytes, peak * 1e-9},
                               {std::max(last, peak / best.read_bytes) * 1.5, peak * 1e-9}}});
  for (const SuiteRow& row : suite.rows) {
    const std::string name(to_string(row.type));
    if (chart.series.empty() || chart.series.back().name != name) chart.series.push_back({name, {}});
    chart.series.back().points.push_back({row.intensity(), row.operations / row.result.median * 1e-9});
  }
  return line_chart_svg(chart);
}

}  // namespace strata
