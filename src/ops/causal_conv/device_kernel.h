// Internal to causal_conv: what its kernel gets. Strides in elements.
#pragma once

#include <cstdint>

namespace strata {

struct CausalConvKernel {
  const float *x, *history, *kernel;
  float* y;
  int64_t rows, channels, width, dilation;
  int64_t x_row, history_row, kernel_row, y_row;
  int64_t blocks;  // of threads for each row
};

}  // namespace strata
