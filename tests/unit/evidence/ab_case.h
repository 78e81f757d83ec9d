// Synthetic paired trials.
#pragma once

#include <functional>

#include "evidence/ab.h"
#include "evidence/ab_gates.h"

namespace strata::test {

inline AbPlan ab_plan(const std::string& gates = "prefill>=+5%") {
  AbPlan plan;
  plan.model = "model.gguf";
  plan.model_hash = "0011223344556677";
  plan.settings = {{"threads", "2"}};
  plan.overrides[1] = {{"arm.matmul", "avx2"}};
  plan.lengths = {1024};
  plan.pairs = 5;
  plan.slots = 2;
  plan.generate = 16;
  plan.retries = 2;
  plan.seed = 1;
  plan.gates = parse_gates(gates, "--gate");
  return plan;
}

// Every cell of the plan, in its order; `seconds` is asked in that order too.
inline AbTrial ab_trial(const AbPlan& plan, const std::function<double(const AbCell&)>& seconds) {
  AbTrial trial;
  trial.plan = plan;
  int64_t order = 0;
  for (int64_t pair = 0; pair < plan.pairs; ++pair)
    for (const int64_t length : plan.lengths)
      for (int64_t slot = 0; slot < plan.slots; ++slot)
        for (const bool second : {false, true}) {
          const AbSide first = first_side(pair, slot);
          const AbSide side = !second ? first : first == AbSide::A ? AbSide::B : AbSide::A;
          for (const AbMetric metric : kAbMetrics) {
            AbCell cell;
            cell.side = side;
            cell.metric = metric;
            cell.length = length;
            cell.pair = pair;
            cell.slot = slot;
            cell.order = order;
            cell.tokens = metric == AbMetric::Prefill ? length : plan.generate;
            cell.output = "ffeeddccbbaa9988";
            cell.seconds = seconds(cell);
            trial.cells.push_back(cell);
          }
          ++order;
        }
  for (const int64_t length : plan.lengths) {
    trial.arms.push_back({AbSide::A, length, "matmul", "", "avx512", "avx512"});
    trial.arms.push_back({AbSide::B, length, "matmul", "avx2", "avx2", "avx2"});
    trial.outputs.push_back({length, true, 17, -1, 0});
  }
  return trial;
}

// B is `ratio` times as fast as A, but for a wobble that keeps the ratios apart.
inline AbTrial steady_trial(const AbPlan& plan, double ratio) {
  return ab_trial(plan, [ratio](const AbCell& cell) {
    return (cell.side == AbSide::B ? 1 / ratio : 1.0) * (1 + 0.0001 * static_cast<double>(cell.order % 7));
  });
}

}  // namespace strata::test
