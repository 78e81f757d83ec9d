// Paired trials: two sides that differ in named settings, measured in turn; gates fixed before the first run decide.
// Knows no engine: what ran comes in as cells.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "evidence/ab_statistics.h"

namespace strata {

enum class AbSide : uint8_t { A, B };
enum class AbMetric : uint8_t { Prefill, Decode };
inline constexpr std::array kAbSides{AbSide::A, AbSide::B};
inline constexpr std::array kAbMetrics{AbMetric::Prefill, AbMetric::Decode};
std::string_view to_string(AbSide side);      // "A"
std::string_view to_string(AbMetric metric);  // "prefill"

// What the speed of B has to reach, as a change against A.
struct AbGate {
  AbMetric metric = AbMetric::Prefill;
  std::optional<int64_t> length;  // none: every length of the trial, each of which has to pass
  double per_cent = 0;            // +5: at least 1.05 times the speed of A
  bool holdout = false;           // a length that was kept out of the work on the arm

  double ratio() const { return 1 + per_cent / 100; }
  bool covers(AbMetric of, int64_t at) const { return metric == of && length.value_or(at) == at; }
};

using NamedValues = std::vector<std::pair<std::string, std::string>>;

// All that is fixed before the first run; plan_hash() covers every field.
struct AbPlan {
  std::string model, model_hash;
  NamedValues settings;                  // of both sides
  std::array<NamedValues, 2> overrides;  // of one side, by AbSide
  std::vector<int64_t> lengths;          // prompt tokens, ascending
  int64_t pairs = 0, slots = 0;          // ratios of a length: pairs x slots
  int64_t generate = 0;                  // tokens of a decode cell
  int64_t retries = 0;                   // further attempts after one that failed
  int64_t seed = 0;                      // of the token trace
  double confidence = 0.95;              // of the interval, both ends together
  bool same_bits = false;                // the sides promise the same bits
  bool same_sides = false;               // A/A: they do not differ, and no gain may be found
  std::vector<AbGate> gates;
};

// Over every field of the plan, 16 hex digits. It protects from changes by mistake, not from forgery.
std::string plan_hash(const AbPlan& plan);

// The side that runs first: A B, B A, B A, A B, ... so that a linear drift cancels within two slots and two pairs.
AbSide first_side(int64_t pair, int64_t slot);

// One timed phase of one run.
struct AbCell {
  AbSide side = AbSide::A;
  AbMetric metric = AbMetric::Prefill;
  int64_t length = 0, pair = 0, slot = 0;
  int64_t attempt = 0;  // counts up when an attempt fails; both sides are repeated then
  int64_t order = 0;    // of its run among all runs of the trial
  int64_t tokens = 0;
  double seconds = 0;
  std::string output;              // hash of logits and tokens
  std::string failure;             // not empty: the run failed, there is no time
  std::vector<std::string> flags;  // disturbances
};

// Arms of one operator that ran on one side at one length; several are joined by '+', none is "".
struct AbArmUse {
  AbSide side = AbSide::A;
  int64_t length = 0;
  std::string op, requested, prefill, decode;
};

// How the outputs of the two sides compare at one length.
struct AbOutputs {
  int64_t length = 0;
  bool same_bits = false;
  int64_t rows = 0;           // logit rows compared: up to the first token that differs
  int64_t first_token = -1;   // generated token that differs first; -1: none
  double max_difference = 0;  // of a logit in these rows
};

struct AbTrial {
  AbPlan plan;
  NamedValues facts;  // program, binary, device, date, ...
  std::vector<AbCell> cells;
  std::vector<AbArmUse> arms;
  std::vector<AbOutputs> outputs;
  std::string stopped;  // why cells are missing; empty: the trial ran to its end
};

// Error{Usage} for a plan that cannot decide anything: no gates, lengths that no gate can mean, sides that do not
// differ (or do, in an A/A trial), too few pairs for the confidence, counts out of range.
void check_plan(const AbPlan& plan);

// Error{Format} for cells that are not those of the plan: other lengths or token counts, times that are no times, cells
// twice, runs in another order, attempts that nothing failed before. Cells may be missing.
void check_cells(const AbTrial& trial);

enum class AbOutcome : uint8_t { Pass, Fail, Open };
std::string_view to_string(AbOutcome outcome);  // "pass", "fail", "open"

// One metric at one length.
struct AbComparison {
  AbMetric metric = AbMetric::Prefill;
  int64_t length = 0;
  std::vector<double> ratios;  // speed of B over that of A, by pair and slot
  std::vector<bool> disturbed;
  std::array<double, 2> speed{};  // tokens a second: medians of the sides
  double median = 1;              // of the ratios: what decides
  Interval interval, bootstrap;
  double of_medians = 1;  // ratio of the sides' medians, beside it
  bool disagree = false;  // the two differ in sign: two modes, or drift
};

struct AbGateResult {
  AbGate gate;
  std::vector<std::pair<int64_t, AbOutcome>> lengths;
  AbOutcome outcome = AbOutcome::Open;  // Fail if one fails, Pass if all pass
};

enum class AbVerdict : uint8_t { Promote, Reject, Inconclusive, Incomplete, Void };
std::string_view to_string(AbVerdict verdict);  // "PROMOTE"
int exit_code(AbVerdict verdict);               // 0, 4, 5, 3, 3

struct AbJudgement {
  std::vector<AbComparison> comparisons;
  std::vector<AbGateResult> gates;
  int64_t failed_attempts = 0, disturbed = 0, missing = 0;  // runs, pairs, pairs
  AbVerdict verdict = AbVerdict::Incomplete;
  std::vector<std::string> reasons;  // of Void and Incomplete
};

// After check_plan() and check_cells(). The same trial gives the same judgement on every machine.
AbJudgement judge(const AbTrial& trial);

}  // namespace strata
