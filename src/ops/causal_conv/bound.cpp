#include "ops/causal_conv/causal_conv.h"
#include "ops/oracle.h"
#include "ops/rounding.h"

namespace strata {

void causal_conv_bound(const CausalConvArgs& args, double* out) {
  const int64_t rows = args.x.extent(0), channels = args.x.extent(1), width = args.kernel.extent(1);
  const int64_t past = (width - 1) * args.dilation;
  const auto taps = static_cast<double>(width);
  for (int64_t t = 0; t < rows; ++t)
    for (int64_t c = 0; c < channels; ++c) {
      double sum = 0, magnitude = 0;
      for (int64_t j = 0; j < width; ++j) {
        const int64_t row = t - (width - 1 - j) * args.dilation;
        const double x = row < 0 ? element(args.history, past + row, c) : element(args.x, row, c);
        sum += element(args.kernel, c, j) * x;
        magnitude += std::fabs(element(args.kernel, c, j) * x);
      }
      *out++ = silu_error(sum, gamma(taps) * magnitude + taps * kTiny);
    }
}

}  // namespace strata
