// A wave for each row. The next expert is the first, by (logit, index), after the one chosen before: the row is read k
// times, from a cache, and nothing is kept. The sum of a lane runs over experts lane, lane + 32, ...
#include "device/kernel_math.h"
#include "ops/route/device_kernel.h"

using namespace strata;
using namespace strata::gpu;

namespace {

// NaN is chosen last.
__device__ inline float rank_of(float logit) { return logit != logit ? -infinity_f32() : logit; }

// Larger logits first, then lower indices.
__device__ inline bool before(float x, int i, float y, int j) { return x > y || (x == y && i < j); }

struct Choice {
  float rank;
  int expert;
};

__device__ inline Choice best_after(const float* logits, int experts, Choice last, bool first) {
  Choice best{-infinity_f32(), 0x7fffffff};
  for (int e = lane(); e < experts; e += kWave) {
    const float rank = rank_of(logits[e]);
    if ((first || before(last.rank, last.expert, rank, e)) && before(rank, e, best.rank, best.expert)) best = {rank, e};
  }
  for (int step = kWave / 2; step > 0; step /= 2) {
    const float rank = shuffle_xor(best.rank, step);
    const int expert = shuffle_xor(best.expert, step);
    if (before(rank, expert, best.rank, best.expert)) best = {rank, expert};
  }
  return best;
}

}  // namespace

extern "C" __global__ void route_rows(const RouteKernel a) {
  const int64_t row = block_x();
  const float* logits = a.logits + row * a.logits_row;
  int32_t* ids = a.ids + row * a.ids_row;
  float* weights = a.weights + row * a.weights_row;
  const int experts = static_cast<int>(a.experts), k = static_cast<int>(a.k);
  Choice choice = best_after(logits, experts, {0, 0}, true);
  const float best = choice.rank;
  float total = 0;
  for (int e = lane(); e < experts; e += kWave) total += exp_f32(logits[e] - best);
  total = wave_sum(total);
  float chosen = 0;
  for (int i = 0; i < k; ++i) {
    if (i > 0) choice = best_after(logits, experts, choice, false);
    const float weight = div_f32(exp_f32(logits[choice.expert] - best), total);
    chosen += weight;
    if (lane() == 0) ids[i] = choice.expert, weights[i] = weight;
  }
  wave_barrier();
  const float smallest = 6.1e-5f;  // as other engines clamp it; NaN stays
  const float divisor = a.normalise ? (chosen < smallest ? smallest : chosen) : 1.0f;
  if (lane() == 0)
    for (int i = 0; i < k; ++i) weights[i] = mul_f32(div_f32(weights[i], divisor), a.scale);
}
