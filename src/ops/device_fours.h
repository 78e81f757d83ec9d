// Four f32 at a time in kernels that work element by element.
#pragma once

#include "device/kernel.h"

namespace strata::gpu {

// The first `left` of four, zeros behind them; 16 bytes at once where `vector` says that they lie on a multiple of 16
// and that all four are there.
__device__ inline Float4 load_fours(const float* from, int64_t left, bool vector) {
  if (vector) return load_float4(from);
  Float4 four{};
  for (int k = 0; k < 4; ++k) four.v[k] = k < left ? from[k] : 0.0f;
  return four;
}

__device__ inline void store_fours(float* to, const Float4& four, int64_t left, bool vector) {
  if (vector) return store_float4(to, four);
  for (int k = 0; k < 4; ++k)
    if (k < left) to[k] = four.v[k];
}

}  // namespace strata::gpu
