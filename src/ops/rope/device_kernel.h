// Internal to rope: what its kernel gets. Strides in elements.
#pragma once

#include <cstdint>

namespace strata {

struct RopeKernel {
  float* x;
  const float *cos, *sin;
  int64_t rows, heads, half;
  int64_t x_row, x_head, cos_row, sin_row;
  int32_t adjacent;
};

}  // namespace strata
