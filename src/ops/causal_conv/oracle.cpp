#include "ops/oracle.h"

#include <cmath>

#include "ops/causal_conv/causal_conv.h"

namespace strata {

void causal_conv_oracle(const CausalConvArgs& args, double* out) {
  const int64_t rows = args.x.extent(0), channels = args.x.extent(1), width = args.kernel.extent(1);
  const int64_t history = (width - 1) * args.dilation;
  for (int64_t t = 0; t < rows; ++t)
    for (int64_t c = 0; c < channels; ++c) {
      double sum = 0;
      for (int64_t j = 0; j < width; ++j) {
        const int64_t row = t - (width - 1 - j) * args.dilation;  // negative: in the history
        const double input = row >= 0 ? element(args.x, row, c) : element(args.history, history + row, c);
        sum += element(args.kernel, c, j) * input;
      }
      out[t * channels + c] = sum / (1 + std::exp(-sum));
    }
}

}  // namespace strata
