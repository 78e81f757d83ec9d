// Internal to the rotation: what its kernel gets.
#pragma once

#include <cstdint>

namespace strata {

struct RotationKernel {
  float* x;
  int64_t row, head;  // elements from one to the next
  int64_t heads, dim;
  int32_t n;  // channels that are mixed, a power of two
  float scale;
};

}  // namespace strata
