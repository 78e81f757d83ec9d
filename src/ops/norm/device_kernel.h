// Internal to norm: what its kernel gets.
#pragma once

#include <cstdint>

namespace strata {

struct NormKernel {
  const float* x;
  const float* weight;
  float* y;
  int64_t groups, width;
  int64_t x_row, x_group, y_row, y_group;  // elements from one to the next
  int64_t weight_group;                    // 0: one weight for all
  float eps;
};

}  // namespace strata
