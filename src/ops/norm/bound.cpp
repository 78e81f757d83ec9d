#include <vector>

#include "ops/norm/norm.h"
#include "ops/oracle.h"
#include "ops/rounding.h"

namespace strata {

void norm_bound(const NormArgs& args, double* out) {
  const int64_t rows = args.x.extent(0), groups = args.x.extent(1), width = args.x.extent(2);
  norm_oracle(args, out);
  const double roundings = gamma((dot_roundings(width) + 2) / 2 + 4);
  const double squares_below_normal = kTiny / static_cast<double>(args.eps);
  for (int64_t t = 0; t < rows; ++t)
    for (int64_t g = 0; g < groups; ++g)
      for (int64_t i = 0; i < width; ++i, ++out) {
        const double weight = args.weight.rank == 2 ? element(args.weight, g, i) : element(args.weight, i);
        *out = (roundings + squares_below_normal) * std::fabs(*out) + kTiny * (1 + std::fabs(weight));
      }
}

}  // namespace strata
