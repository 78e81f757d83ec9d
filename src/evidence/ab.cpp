#include "evidence/ab.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "base/error.h"
#include "evidence/ab_gates.h"
#include "evidence/statistics.h"

namespace strata {
namespace {

using Place = std::tuple<AbMetric, int64_t, int64_t, int64_t>;  // length, pair, slot
struct Both {
  std::array<const AbCell*, 2> cells{};
  bool complete() const { return cells[0] != nullptr && cells[1] != nullptr; }
};

// The attempts that count: those in which every phase of both sides has its time.
std::map<Place, Both> counted_cells(const AbTrial& trial) {
  std::set<std::tuple<int64_t, int64_t, int64_t, int64_t>> failed;  // length, pair, slot, attempt
  for (const AbCell& cell : trial.cells)
    if (!cell.failure.empty()) failed.emplace(cell.length, cell.pair, cell.slot, cell.attempt);
  std::map<Place, Both> counted;
  for (const AbCell& cell : trial.cells)
    if (!failed.contains({cell.length, cell.pair, cell.slot, cell.attempt}))
      counted[{cell.metric, cell.length, cell.pair, cell.slot}].cells[static_cast<size_t>(cell.side)] = &cell;
  return counted;
}

AbComparison compare(const AbPlan& plan, const std::map<Place, Both>& counted, AbMetric metric, int64_t length) {
  AbComparison result;
  result.metric = metric;
  result.length = length;
  std::array<std::vector<double>, 2> speeds;
  for (const auto& [place, both] : counted) {
    if (std::get<0>(place) != metric || std::get<1>(place) != length || !both.complete()) continue;
    std::array<double, 2> speed{};
    for (size_t side = 0; side < 2; ++side) {
      speed[side] = static_cast<double>(both.cells[side]->tokens) / both.cells[side]->seconds;
      speeds[side].push_back(speed[side]);
    }
    result.ratios.push_back(speed[1] / speed[0]);
    result.disturbed.push_back(!both.cells[0]->flags.empty() || !both.cells[1]->flags.empty());
  }
  if (result.ratios.empty()) return result;
  for (size_t side = 0; side < 2; ++side) result.speed[side] = median(speeds[side]);
  result.median = median(result.ratios);
  result.interval = median_interval(result.ratios, plan.confidence);
  result.bootstrap = bootstrap_interval(result.ratios, plan.confidence);
  result.of_medians = result.speed[1] / result.speed[0];
  result.disagree = (result.median - 1) * (result.of_medians - 1) < 0;
  return result;
}

AbOutcome outcome_of(const AbComparison& comparison, double least) {
  if (comparison.ratios.empty()) return AbOutcome::Open;
  if (comparison.interval.low >= least) return AbOutcome::Pass;
  return comparison.interval.high < least ? AbOutcome::Fail : AbOutcome::Open;
}

AbGateResult gate_result(const AbGate& gate, const std::vector<AbComparison>& comparisons) {
  AbGateResult result{gate, {}, AbOutcome::Pass};
  for (const AbComparison& one : comparisons) {
    if (!gate.covers(one.metric, one.length)) continue;
    const AbOutcome outcome = outcome_of(one, gate.ratio());
    result.lengths.emplace_back(one.length, outcome);
    if (outcome == AbOutcome::Fail) result.outcome = AbOutcome::Fail;
    if (outcome == AbOutcome::Open && result.outcome == AbOutcome::Pass) result.outcome = AbOutcome::Open;
  }
  return result;
}

bool names(const std::string& joined, const std::string& arm) {
  for (size_t start = 0; start <= joined.size();) {
    const size_t end = std::min(joined.find('+', start), joined.size());
    if (joined.compare(start, end - start, arm) == 0) return true;
    start = end + 1;
  }
  return false;
}

bool ran(const AbArmUse& use) { return names(use.prefill, use.requested) || names(use.decode, use.requested); }

// A requested arm has to have run somewhere, and at every length that a gate on a gain is about.
void check_requested(const AbTrial& trial, std::vector<std::string>& reasons) {
  std::map<std::pair<AbSide, std::string>, std::pair<bool, std::string>> requested;  // ran anywhere; what ran instead
  for (const AbArmUse& use : trial.arms) {
    if (use.requested.empty()) continue;
    auto& [anywhere, instead] = requested[{use.side, use.op}];
    anywhere = anywhere || ran(use);
    if (!ran(use)) instead = use.prefill.empty() ? use.decode : use.prefill;
  }
  for (const auto& [key, found] : requested)
    if (!found.first)
      reasons.push_back(fmt::format("side {}: the requested arm of {} never ran ({})", to_string(key.first), key.second,
                                    found.second.empty() ? "the operator was not called" : found.second + " ran"));
  if (!reasons.empty()) return;
  for (const AbArmUse& use : trial.arms)
    for (const AbGate& gate : trial.plan.gates)
      if (!use.requested.empty() && !ran(use) && gate.per_cent > 0 && gate.covers(gate.metric, use.length) &&
          (gate.metric == AbMetric::Prefill ? use.prefill : use.decode) != "") {
        reasons.push_back(fmt::format("side {}: gate {}, but {} of {} did not run at {}", to_string(use.side),
                                      to_text(gate), use.requested, use.op, length_text(use.length)));
        break;
      }
}

bool is_arm_setting(const std::string& name) {
  return name.starts_with("arm.") || name == "cpu.isa" || name == "select.wmma" || name == "gdn.wy";
}

// Sides that differ in arms alone have to have run different arms.
void check_difference(const AbTrial& trial, std::vector<std::string>& reasons) {
  bool only_arms = !trial.plan.same_sides && !trial.arms.empty();
  for (const NamedValues& side : trial.plan.overrides)
    for (const auto& [name, value] : side) only_arms = only_arms && is_arm_setting(name);
  if (!only_arms) return;
  std::array<std::set<std::tuple<int64_t, std::string, std::string, std::string>>, 2> used;
  for (const AbArmUse& use : trial.arms)
    used[static_cast<size_t>(use.side)].emplace(use.length, use.op, use.prefill, use.decode);
  if (used[0] == used[1]) reasons.push_back("both sides ran the same arms: nothing was compared");
}

void check_outputs(const AbTrial& trial, std::vector<std::string>& reasons) {
  for (const AbOutputs& outputs : trial.outputs)
    if (trial.plan.same_bits && !outputs.same_bits)
      reasons.push_back(
          fmt::format("the sides promise the same bits, and differ at {} ({})", length_text(outputs.length),
                      outputs.first_token >= 0 ? fmt::format("from generated token {} on", outputs.first_token)
                                               : fmt::format("logits by up to {:.3g}", outputs.max_difference)));
  std::map<std::tuple<AbSide, AbMetric, int64_t>, std::string> first;
  std::set<std::tuple<AbSide, AbMetric, int64_t>> told;
  for (const AbCell& cell : trial.cells) {
    if (!cell.failure.empty()) continue;
    const std::tuple key(cell.side, cell.metric, cell.length);
    const auto [at, added] = first.emplace(key, cell.output);
    if (!added && at->second != cell.output && told.insert(key).second)
      reasons.push_back(fmt::format("side {} gives other outputs from run to run: {}@{}", to_string(cell.side),
                                    to_string(cell.metric), length_text(cell.length)));
    std::tuple other = key;
    std::get<0>(other) = cell.side == AbSide::A ? AbSide::B : AbSide::A;
    const auto across = first.find(other);
    if (trial.plan.same_bits && across != first.end() && across->second != cell.output && told.insert(key).second)
      reasons.push_back(fmt::format("the sides promise the same bits, and the hashes of {}@{} differ",
                                    to_string(cell.metric), length_text(cell.length)));
  }
}

void count_cells(const AbTrial& trial, AbJudgement& judgement) {
  std::set<std::tuple<AbSide, int64_t, int64_t, int64_t, int64_t>> failed;
  for (const AbCell& cell : trial.cells)
    if (!cell.failure.empty()) failed.emplace(cell.side, cell.length, cell.pair, cell.slot, cell.attempt);
  judgement.failed_attempts = static_cast<int64_t>(failed.size());
  const int64_t wanted = trial.plan.pairs * trial.plan.slots;
  for (const AbComparison& one : judgement.comparisons) {
    judgement.missing += wanted - static_cast<int64_t>(one.ratios.size());
    judgement.disturbed += std::count(one.disturbed.begin(), one.disturbed.end(), true);
  }
}

AbVerdict verdict_of(const AbTrial& trial, AbJudgement& judgement) {
  bool open = false, failed = false;
  for (const AbGateResult& gate : judgement.gates) {
    open = open || gate.outcome == AbOutcome::Open;
    failed = failed || gate.outcome == AbOutcome::Fail;
    if (trial.plan.same_sides && gate.gate.per_cent > 0 && gate.outcome == AbOutcome::Pass)
      judgement.reasons.push_back(
          fmt::format("an A/A trial passed gate {}: what was measured is not the difference of "
                      "the sides",
                      to_text(gate.gate)));
  }
  check_requested(trial, judgement.reasons);
  check_difference(trial, judgement.reasons);
  check_outputs(trial, judgement.reasons);
  if (!judgement.reasons.empty()) return AbVerdict::Void;
  if (judgement.missing > 0) {
    judgement.reasons.push_back(
        fmt::format("{} of {} ratios are missing{}", judgement.missing,
                    static_cast<int64_t>(judgement.comparisons.size()) * trial.plan.pairs * trial.plan.slots,
                    trial.stopped.empty() ? std::string() : ": " + trial.stopped));
    return AbVerdict::Incomplete;
  }
  return failed ? AbVerdict::Reject : open ? AbVerdict::Inconclusive : AbVerdict::Promote;
}

}  // namespace

std::string_view to_string(AbOutcome outcome) {
  switch (outcome) {
    case AbOutcome::Pass: return "pass";
    case AbOutcome::Fail: return "fail";
    case AbOutcome::Open: return "open";
  }
  return "unknown";
}

std::string_view to_string(AbVerdict verdict) {
  switch (verdict) {
    case AbVerdict::Promote: return "PROMOTE";
    case AbVerdict::Reject: return "REJECT";
    case AbVerdict::Inconclusive: return "INCONCLUSIVE";
    case AbVerdict::Incomplete: return "INCOMPLETE";
    case AbVerdict::Void: return "VOID";
  }
  return "unknown";
}

int exit_code(AbVerdict verdict) {
  switch (verdict) {
    case AbVerdict::Promote: return 0;
    case AbVerdict::Reject: return 4;
    case AbVerdict::Inconclusive: return 5;
    default: return exit_code(ErrorKind::Evidence);
  }
}

AbJudgement judge(const AbTrial& trial) {
  AbJudgement judgement;
  const std::map<Place, Both> counted = counted_cells(trial);
  for (const AbMetric metric : kAbMetrics)
    for (const int64_t length : trial.plan.lengths)
      judgement.comparisons.push_back(compare(trial.plan, counted, metric, length));
  for (const AbGate& gate : trial.plan.gates) judgement.gates.push_back(gate_result(gate, judgement.comparisons));
  count_cells(trial, judgement);
  judgement.verdict = verdict_of(trial, judgement);
  return judgement;
}

}  // namespace strata
