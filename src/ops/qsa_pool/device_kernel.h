// Internal to qsa_pool: what its kernel gets. Strides in elements.
#pragma once

#include <cstdint>

namespace strata {

inline constexpr int kMaxPoolPairs = 256;

struct QsaPoolKernel {
  const float* raw;
  float* tail;
  const float* weight;
  void* pooled;
  int64_t rows, d, ratio, first, first_block;
  int64_t completed;  // blocks of positions
  int64_t raw_row, tail_row, pooled_row;
  float eps, magnitude;
  int32_t half, adjacent, stored;  // stored: 0 f32, 1 bf16, 2 f16
  float frequency[kMaxPoolPairs];
};

}  // namespace strata
