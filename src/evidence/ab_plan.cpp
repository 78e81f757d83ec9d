// What may stand in a plan, its hash, and which cells belong to it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "base/error.h"
#include "base/hash.h"
#include "evidence/ab.h"
#include "evidence/ab_gates.h"

namespace strata {
namespace {

constexpr int64_t kMaxPairs = 1000, kMaxSlots = 100, kMaxRatios = 1000, kMaxTokens = int64_t{1} << 30,
                  kMaxRetries = 100;
constexpr double kMaxSeconds = 1e7;

void check_range(const char* name, int64_t value, int64_t low, int64_t high) {
  if (value < low || value > high)
    throw Error(ErrorKind::Usage, fmt::format("{} of {}: {} to {} are possible", name, value, low, high));
}

void check_gate(const AbPlan& plan, const AbGate& gate) {
  if (!gate.length) return;
  if (std::find(plan.lengths.begin(), plan.lengths.end(), *gate.length) != plan.lengths.end()) return;
  std::string lengths;
  for (const int64_t length : plan.lengths) lengths += (lengths.empty() ? "" : ", ") + length_text(length);
  throw Error(ErrorKind::Usage, fmt::format("gate {}: its length is none of those measured ({}); add it to --lengths",
                                            to_text(gate), lengths));
}

void check_gates(const AbPlan& plan) {
  if (plan.gates.empty())
    throw Error(ErrorKind::Usage,
                "a trial without gates decides nothing: fix one before the first run, such as "
                "--gate 'prefill>=+5%'");
  std::set<std::tuple<AbMetric, int64_t>> seen;
  for (const AbGate& gate : plan.gates) {
    check_gate(plan, gate);
    if (!seen.emplace(gate.metric, gate.length.value_or(0)).second)
      throw Error(ErrorKind::Usage, fmt::format("gate {}: there is another one for the same cells", to_text(gate)));
  }
}

void append(std::string& text, const std::string& name, const std::string& value) {
  text += fmt::format("{}:{}:{}={}\n", name.size(), value.size(), name, value);
}

void append(std::string& text, const std::string& group, const NamedValues& values) {
  for (const auto& [name, value] : values) append(text, group + " " + name, value);
}

// Runs have one number each, and follow one another as the plan says.
class CellCheck {
 public:
  explicit CellCheck(const AbTrial& trial) : trial_(trial), plan_(trial.plan) {}

  void run() {
    for (const AbCell& cell : trial_.cells) {
      check_place(cell);
      check_times(cell);
      if (!seen_.emplace(key_of(cell), &cell).second) fail(cell, "is there twice");
    }
    for (const auto& [key, cell] : seen_) check_neighbours(*cell);
    check_order();
  }

 private:
  using Key = std::tuple<int64_t, int64_t, int64_t, int64_t, AbMetric, AbSide>;  // length, pair, slot, attempt
  static Key key_of(const AbCell& cell) {
    return {cell.length, cell.pair, cell.slot, cell.attempt, cell.metric, cell.side};
  }

  [[noreturn]] static void fail(const AbCell& cell, const std::string& what) {
    throw Error(ErrorKind::Format,
                fmt::format("cell {} {}@{} pair {} slot {} attempt {} {}", to_string(cell.side), to_string(cell.metric),
                            length_text(cell.length), cell.pair, cell.slot, cell.attempt, what));
  }

  void check_place(const AbCell& cell) const {
    if (std::find(plan_.lengths.begin(), plan_.lengths.end(), cell.length) == plan_.lengths.end())
      fail(cell, "has a length that is not planned");
    if (cell.pair < 0 || cell.pair >= plan_.pairs || cell.slot < 0 || cell.slot >= plan_.slots)
      fail(cell, "lies outside the planned pairs and slots");
    if (cell.attempt < 0 || cell.attempt > plan_.retries) fail(cell, "exceeds the planned retries");
    if (cell.order < 0) fail(cell, "has no place in the order of runs");
  }

  void check_times(const AbCell& cell) const {
    if (!cell.failure.empty()) return;
    const int64_t tokens = cell.metric == AbMetric::Prefill ? cell.length : plan_.generate;
    if (cell.tokens != tokens) fail(cell, fmt::format("is of {} tokens, planned are {}", cell.tokens, tokens));
    if (!(cell.seconds > 0 && cell.seconds < kMaxSeconds)) fail(cell, "has a time that is none");
    if (cell.output.empty()) fail(cell, "does not say what came out");
  }

  const AbCell* find(AbSide side, AbMetric metric, const AbCell& near, int64_t attempt) const {
    const auto found = seen_.find(Key{near.length, near.pair, near.slot, attempt, metric, side});
    return found == seen_.end() ? nullptr : found->second;
  }

  // The other phase of the same run has the same number; a further attempt follows a failed one.
  void check_neighbours(const AbCell& cell) const {
    for (const AbMetric metric : kAbMetrics)
      if (const AbCell* other = find(cell.side, metric, cell, cell.attempt); other && other->order != cell.order)
        fail(cell, "has another order number than the rest of its run");
    if (cell.attempt == 0) return;
    bool failed = false, any = false;
    for (const AbSide side : kAbSides)
      for (const AbMetric metric : kAbMetrics)
        if (const AbCell* before = find(side, metric, cell, cell.attempt - 1)) {
          any = true;
          failed = failed || !before->failure.empty();
        }
    if (!any || !failed) fail(cell, "repeats an attempt that did not fail");
  }

  // In order of their numbers, runs walk through pairs, lengths, slots, attempts and sides as planned.
  void check_order() const {
    std::map<int64_t, const AbCell*> runs;
    for (const AbCell& cell : trial_.cells) {
      const auto [at, added] = runs.emplace(cell.order, &cell);
      const AbCell& other = *at->second;
      if (!added && std::tie(cell.side, cell.length, cell.pair, cell.slot, cell.attempt) !=
                        std::tie(other.side, other.length, other.pair, other.slot, other.attempt))
        fail(cell, "shares its order number with another run");
    }
    std::tuple<int64_t, int64_t, int64_t, int64_t, bool> last{-1, 0, 0, 0, false};
    for (const auto& [order, cell] : runs) {
      const bool second = cell->side != first_side(cell->pair, cell->slot);
      const std::tuple place(cell->pair, cell->length, cell->slot, cell->attempt, second);
      if (place <= last) fail(*cell, "did not run in the planned order");
      last = place;
    }
  }

  const AbTrial& trial_;
  const AbPlan& plan_;
  std::map<Key, const AbCell*> seen_;
};

}  // namespace

std::string_view to_string(AbSide side) { return side == AbSide::A ? "A" : "B"; }
std::string_view to_string(AbMetric metric) { return metric == AbMetric::Prefill ? "prefill" : "decode"; }

AbSide first_side(int64_t pair, int64_t slot) { return (pair + slot) % 2 == 0 ? AbSide::A : AbSide::B; }

std::string plan_hash(const AbPlan& plan) {
  std::string text;
  append(text, "model", plan.model);
  append(text, "model_hash", plan.model_hash);
  append(text, "setting", plan.settings);
  append(text, "A", plan.overrides[0]);
  append(text, "B", plan.overrides[1]);
  for (const int64_t length : plan.lengths) append(text, "length", std::to_string(length));
  for (const auto& [name, value] :
       {std::pair("pairs", plan.pairs), std::pair("slots", plan.slots), std::pair("generate", plan.generate),
        std::pair("retries", plan.retries), std::pair("seed", plan.seed),
        std::pair("same_bits", static_cast<int64_t>(plan.same_bits)),
        std::pair("same_sides", static_cast<int64_t>(plan.same_sides))})
    append(text, name, std::to_string(value));
  append(text, "confidence", fmt::format("{}", plan.confidence));
  for (const AbGate& gate : plan.gates) append(text, "gate", to_text(gate));
  return hash_hex(hash64(text.data(), text.size()));
}

void check_plan(const AbPlan& plan) {
  check_range("pairs", plan.pairs, 1, kMaxPairs);
  check_range("slots", plan.slots, 1, kMaxSlots);
  check_range("ratios a length", plan.pairs * plan.slots, 1, kMaxRatios);
  check_range("generated tokens", plan.generate, 1, kMaxTokens);
  check_range("retries", plan.retries, 0, kMaxRetries);
  if (plan.lengths.empty()) throw Error(ErrorKind::Usage, "a trial needs at least one length (--lengths)");
  for (size_t i = 0; i < plan.lengths.size(); ++i) {
    check_range("length", plan.lengths[i], 1, kMaxTokens);
    if (i > 0 && plan.lengths[i] <= plan.lengths[i - 1])
      throw Error(ErrorKind::Usage, "lengths ascend, and each stands once");
  }
  if (!(plan.confidence >= 0.5 && plan.confidence <= 0.999))
    throw Error(ErrorKind::Usage, fmt::format("confidence of {}: 0.5 to 0.999 are possible", plan.confidence));
  if (const int64_t needed = samples_needed(plan.confidence); plan.pairs * plan.slots < needed)
    throw Error(
        ErrorKind::Usage,
        fmt::format("{} pairs of {} slots give {} ratios a length: an interval of {} % needs {} (more --pairs or "
                    "--slots, or a lower --confidence)",
                    plan.pairs, plan.slots, plan.pairs * plan.slots, plan.confidence * 100, needed));
  check_gates(plan);
  const bool differ = plan.overrides[0] != plan.overrides[1];
  if (!differ && !plan.same_sides)
    throw Error(ErrorKind::Usage,
                "the two sides do not differ: name a setting with --a or --b, or ask for an A/A "
                "trial with --aa");
  if (differ && plan.same_sides) throw Error(ErrorKind::Usage, "the two sides of an A/A trial may not differ");
}

void check_cells(const AbTrial& trial) { CellCheck(trial).run(); }

}  // namespace strata
