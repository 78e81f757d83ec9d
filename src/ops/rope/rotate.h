// The rotation of one head, shared by the CPU arms of rope and qsa_pool.
#pragma once

#include <cstdint>

#include "ops/rope/rope.h"

namespace strata {

// Rotates the first 2 · half values of x in place by the angles of one position.
inline void rotate_head(float* x, const float* cos_row, const float* sin_row, int64_t half, RopePairs pairs) {
  const int64_t step = pairs == RopePairs::HalfSplit ? 1 : 2;
  const int64_t partner = pairs == RopePairs::HalfSplit ? half : 1;
  for (int64_t j = 0; j < half; ++j) {
    const float a = x[j * step], b = x[j * step + partner];
    x[j * step] = a * cos_row[j] - b * sin_row[j];
    x[j * step + partner] = a * sin_row[j] + b * cos_row[j];
  }
}

}  // namespace strata
