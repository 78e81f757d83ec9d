#include "ops/oracle.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "ops/route/route.h"

namespace strata {

void route_oracle(const RouteArgs& args, int32_t* ids, double* weights) {
  const int64_t rows = args.logits.extent(0), experts = args.logits.extent(1), k = args.ids.extent(1);
  for (int64_t t = 0; t < rows; ++t) {
    std::vector<double> logits(static_cast<size_t>(experts));
    for (int64_t e = 0; e < experts; ++e) logits[static_cast<size_t>(e)] = element(args.logits, t, e);

    std::vector<int32_t> order(logits.size());
    std::iota(order.begin(), order.end(), 0);
    auto rank = [&](int32_t e) {  // NaN counts as minus infinity
      const double logit = logits[static_cast<size_t>(e)];
      return std::isnan(logit) ? -INFINITY : logit;
    };
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return rank(a) > rank(b); });

    const double largest = rank(order[0]);
    double total = 0, chosen = 0;
    for (double logit : logits) total += std::exp(logit - largest);
    for (int64_t slot = 0; slot < k; ++slot) {
      const int32_t expert = order[static_cast<size_t>(slot)];
      ids[t * k + slot] = expert;
      weights[t * k + slot] = std::exp(logits[static_cast<size_t>(expert)] - largest) / total;
      chosen += weights[t * k + slot];
    }
    for (int64_t slot = 0; slot < k; ++slot) {
      if (args.normalise) weights[t * k + slot] /= std::max(chosen, 6.1e-5);
      weights[t * k + slot] *= static_cast<double>(args.scale);
    }
  }
}

}  // namespace strata
