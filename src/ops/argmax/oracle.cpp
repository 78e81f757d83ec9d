#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "ops/argmax/argmax.h"

namespace strata {

// All ids in the order of the contract, the best first.
void argmax_oracle(const ArgmaxArgs& args, double* out) {
  const int64_t count = args.logits.extent(1);
  for (int64_t t = 0; t < args.logits.extent(0); ++t) {
    const float* logits = args.logits.row<const float>(t);
    std::vector<int64_t> ids(static_cast<size_t>(count));
    std::iota(ids.begin(), ids.end(), 0);
    const auto broken = std::find_if(ids.begin(), ids.end(), [&](int64_t i) { return !std::isfinite(logits[i]); });
    if (broken != ids.end()) {
      *out++ = -2.0 - static_cast<double>(*broken);
      continue;
    }
    if (!args.allowed.empty())
      std::erase_if(ids, [&](int64_t i) {
        return (static_cast<uint32_t>(args.allowed.as<const int32_t>()[i / 32]) & (1u << (i % 32))) == 0;
      });
    std::stable_sort(ids.begin(), ids.end(), [&](int64_t a, int64_t b) { return logits[a] > logits[b]; });
    *out++ = ids.empty() ? -1.0 : static_cast<double>(ids.front());
  }
}

}  // namespace strata
