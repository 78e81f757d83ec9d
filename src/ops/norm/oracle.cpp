#include <cmath>

#include "ops/norm/norm.h"

namespace strata {

void norm_oracle(const NormArgs& args, double* out) {
  const int64_t rows = args.x.extent(0), groups = args.x.extent(1), width = args.x.extent(2);
  for (int64_t t = 0; t < rows; ++t) {
    for (int64_t g = 0; g < groups; ++g) {
      const float* x = args.x[t].row<float>(g);
      const float* weight = args.weight.rank == 2 ? args.weight.row<float>(g) : args.weight.f32();
      double squares = 0;
      for (int64_t i = 0; i < width; ++i) squares += static_cast<double>(x[i]) * static_cast<double>(x[i]);
      const double root = std::sqrt(squares / static_cast<double>(width) + static_cast<double>(args.eps));
      for (int64_t i = 0; i < width; ++i) *out++ = static_cast<double>(x[i]) / root * static_cast<double>(weight[i]);
    }
  }
}

}  // namespace strata
