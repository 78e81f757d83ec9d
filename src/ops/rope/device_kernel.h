// Internal to rope: what its kernels get. Strides in elements.
#pragma once

#include <cstdint>

namespace strata {

struct RopeKernel {
  float* x;
  const float *cos, *sin;
  int64_t x_row, x_head, cos_row, sin_row;
  int64_t blocks;  // of threads for each row
  int32_t heads, half, adjacent;
};

}  // namespace strata
