// What people read of a paired trial: tables and a plot.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "evidence/ab.h"
#include "evidence/ab_gates.h"
#include "evidence/ab_record.h"
#include "evidence/svg_plot.h"

namespace strata {
namespace {

constexpr size_t kMostLines = 20;  // of a list; the record has all

std::string side_text(const NamedValues& values) {
  std::string text;
  for (const auto& [name, value] : values)
    if (!value.empty()) text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name, value);
  return text.empty() ? "the settings as they are" : text;
}

std::string shape_text(const AbTrial& trial) {
  const AbPlan& plan = trial.plan;
  return fmt::format("{} pairs x {} slots at each length, {} tokens generated, {:g} % interval; plan {}", plan.pairs,
                     plan.slots, plan.generate, plan.confidence * 100, plan_hash(plan));
}

std::string cell_name(const AbComparison& one) {
  return fmt::format("{}@{}", to_string(one.metric), length_text(one.length));
}

std::string interval_text(const Interval& interval) {
  return fmt::format("{} .. {}", change_text(interval.low), change_text(interval.high));
}

std::string comparison_row(const AbComparison& one) {
  if (one.ratios.empty()) return fmt::format("{:<14} {:>11} {:>11}  not measured\n", cell_name(one), "-", "-");
  const auto disturbed = std::count(one.disturbed.begin(), one.disturbed.end(), true);
  return fmt::format("{:<14} {:>11.2f} {:>11.2f} {:>10} {:>22} {:>22} {:>10} {:>9}\n", cell_name(one), one.speed[0],
                     one.speed[1], change_text(one.median), interval_text(one.interval), interval_text(one.bootstrap),
                     change_text(one.of_medians), fmt::format("{}/{}", disturbed, one.ratios.size()));
}

std::string gate_row(const AbGateResult& result) {
  std::string line = fmt::format("gate {:<30} {}", to_text(result.gate), to_string(result.outcome));
  if (result.lengths.size() > 1) {
    line += " (";
    for (const auto& [length, outcome] : result.lengths)
      line += fmt::format("{}{} {}", line.ends_with('(') ? "" : ", ", length_text(length), to_string(outcome));
    line += ")";
  }
  return line + "\n";
}

std::string outputs_row(const AbTrial& trial, const AbOutputs& outputs) {
  std::string text = fmt::format("outputs@{}: ", length_text(outputs.length));
  if (outputs.same_bits) return text + "the same bits\n";
  if (outputs.rows == 0) return text + "cannot be compared\n";
  text += fmt::format("logits differ by up to {:.3g} in {} rows, ", outputs.max_difference, outputs.rows);
  text += outputs.first_token < 0 ? "the tokens are the same" : fmt::format("tokens from {} on", outputs.first_token);
  return text + (trial.plan.same_bits ? " (the same bits were promised)\n" : "\n");
}

std::string failures_text(const AbTrial& trial) {
  std::string text;
  size_t count = 0;
  for (const AbCell& cell : trial.cells)
    if (!cell.failure.empty() && ++count <= kMostLines)
      text +=
          fmt::format("failed and repeated: {}@{} pair {} slot {} attempt {}, side {}: {}\n", to_string(cell.metric),
                      length_text(cell.length), cell.pair, cell.slot, cell.attempt, to_string(cell.side), cell.failure);
  if (count > kMostLines) text += fmt::format("and {} more failed attempts\n", count - kMostLines);
  return text;
}

// Operators whose arms differ between the sides, or were asked for.
std::string arms_text(const AbTrial& trial) {
  const auto one = [](const AbArmUse& use) {
    if (use.prefill == use.decode || use.decode.empty()) return use.prefill.empty() ? std::string("-") : use.prefill;
    return use.prefill + " / " + use.decode;
  };
  std::string text;
  size_t lines = 0;
  for (const AbArmUse& a : trial.arms) {
    if (a.side != AbSide::A) continue;
    for (const AbArmUse& b : trial.arms)
      if (b.side == AbSide::B && b.op == a.op && b.length == a.length &&
          (one(a) != one(b) || !a.requested.empty() || !b.requested.empty()) && ++lines <= kMostLines)
        text += fmt::format("arms of {}@{}: A {}, B {}\n", a.op, length_text(a.length), one(a), one(b));
  }
  return text;
}

}  // namespace

std::string ab_report_text(const AbTrial& trial, const AbJudgement& judgement) {
  std::string text = fmt::format("A: {}\nB: {}\n{}\n\n", side_text(trial.plan.overrides[0]),
                                 side_text(trial.plan.overrides[1]), shape_text(trial));
  text += fmt::format("{:<14} {:>11} {:>11} {:>10} {:>22} {:>22} {:>10} {:>9}\n", "", "A tokens/s", "B tokens/s",
                      "median", "interval", "bootstrap", "of medians", "disturbed");
  for (const AbComparison& one : judgement.comparisons) text += comparison_row(one);
  for (const AbComparison& one : judgement.comparisons)
    if (one.disagree)
      text += fmt::format(
          "warning: {}: the median of the ratios ({}) and the ratio of the medians ({}) differ in sign: "
          "drift, or times of two kinds\n",
          cell_name(one), change_text(one.median), change_text(one.of_medians));
  text += "\n" + arms_text(trial);
  for (const AbOutputs& outputs : trial.outputs) text += outputs_row(trial, outputs);
  text += failures_text(trial);
  for (const AbGateResult& gate : judgement.gates) text += gate_row(gate);
  for (const std::string& reason : judgement.reasons) text += "because: " + reason + "\n";
  return text + fmt::format("verdict: {}\n", to_string(judgement.verdict));
}

std::string ab_report_svg(const AbTrial& trial, const AbJudgement& judgement, const std::string& name) {
  RatioChart chart{.title = fmt::format("{}: {}", name, to_string(judgement.verdict)),
                   .subtitle = fmt::format("A: {} | B: {} | {}", side_text(trial.plan.overrides[0]),
                                           side_text(trial.plan.overrides[1]), trial.plan.model),
                   .label = "speed of B against A (%)"};
  for (const AbComparison& one : judgement.comparisons) {
    RatioRow row;
    row.label = cell_name(one);
    for (size_t i = 0; i < one.ratios.size(); ++i) row.dots.push_back({one.ratios[i], one.disturbed[i]});
    const bool measured = !one.ratios.empty();
    row.median = measured ? one.median : NAN;
    row.low = measured ? one.interval.low : NAN;
    row.high = measured ? one.interval.high : NAN;
    row.note = measured ? change_text(one.median) : "not measured";
    for (const AbGateResult& gate : judgement.gates)
      for (const auto& [length, outcome] : gate.lengths)
        if (gate.gate.metric == one.metric && length == one.length && row.gate.value_or(0) < gate.gate.ratio()) {
          row.gate = gate.gate.ratio();
          row.note = fmt::format("{}, {} {}", change_text(one.median), change_text(*row.gate), to_string(outcome));
        }
    chart.rows.push_back(std::move(row));
  }
  return ratio_chart_svg(chart);
}

}  // namespace strata
