#include "ops/oracle.h"
#include "ops/rope/rope.h"
#include "ops/rounding.h"

namespace strata {

void rope_bound(const RopeArgs& args, double* out) {
  const int64_t rows = args.x.extent(0), heads = args.x.extent(1), dim = args.x.extent(2), half = args.cos.extent(1);
  const bool split = args.pairs == RopePairs::HalfSplit;
  for (int64_t t = 0; t < rows; ++t)
    for (int64_t h = 0; h < heads; ++h, out += dim) {
      std::fill(out, out + dim, 0.0);
      for (int64_t j = 0; j < half; ++j) {
        const int64_t first = split ? j : 2 * j, second = split ? j + half : 2 * j + 1;
        const double c = std::fabs(element(args.cos, t, j)), s = std::fabs(element(args.sin, t, j));
        const double a = std::fabs(element(args.x, t, h, first)), b = std::fabs(element(args.x, t, h, second));
        out[first] = gamma(2) * (a * c + b * s) + 2 * kTiny;
        out[second] = gamma(2) * (a * s + b * c) + 2 * kTiny;
      }
    }
}

}  // namespace strata
