#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/fmath.h"
#include "ops/route/route.h"

namespace strata {
namespace {

constexpr float kSmallestSum = 6.1e-5f;  // as other engines clamp it

void route_row(const float* logits, int64_t experts, int64_t k, const RouteArgs& args, int32_t* ids, float* weights,
               std::vector<int32_t>& order) {
  auto rank = [](float x) { return x != x ? -INFINITY : x; };  // NaN is chosen last
  order.resize(static_cast<size_t>(experts));
  std::iota(order.begin(), order.end(), 0);
  std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](int32_t a, int32_t b) {
    const float x = rank(logits[a]), y = rank(logits[b]);
    return x > y || (x == y && a < b);
  });
  const float best = rank(logits[order[0]]);
  float total = 0;
  for (int64_t e = 0; e < experts; ++e) total += exp_f32(logits[e] - best);
  float chosen = 0;
  for (int64_t i = 0; i < k; ++i) {
    ids[i] = order[static_cast<size_t>(i)];
    weights[i] = exp_f32(logits[ids[i]] - best) / total;
    chosen += weights[i];
  }
  const float divisor = args.normalise ? std::max(chosen, kSmallestSum) : 1.0f;
  for (int64_t i = 0; i < k; ++i) weights[i] = weights[i] / divisor * args.scale;
}

}  // namespace

void route_portable(Queue& queue, const RouteArgs& args) {
  queue.pool().run(args.logits.extent(0), ThreadPool::grain_of(args.logits.extent(1) * 16),
                   [&](int64_t begin, int64_t end, int) {
                     std::vector<int32_t> order;
                     for (int64_t t = begin; t < end; ++t)
                       route_row(args.logits.row<const float>(t), args.logits.extent(1), args.ids.extent(1), args,
                                 args.ids.row<int32_t>(t), args.weights.row<float>(t), order);
                   });
}

}  // namespace strata
