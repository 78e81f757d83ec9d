// Dot products of a weight row with rows of x in f32, by one wave: lane l takes elements 8 l .. 8 l + 7 of every 256,
// element k into sum k, fused; then the tree of the eight sums and the tree of the lanes. The order depends on the
// width alone, so that a row of x gives the same bits in any company.
#pragma once

#include "ops/weights_kernel.h"

namespace strata::gpu {

// 16-byte loads where the rows allow them.
__device__ inline void load8(const float* x, int64_t i, int64_t count, bool aligned, float (&v)[8]) {
  if (aligned && 8 * i + 8 <= count) {
    const Float4 low = load_float4(x + 8 * i), high = load_float4(x + 8 * i + 4);
    for (int k = 0; k < 4; ++k) v[k] = low.v[k], v[4 + k] = high.v[k];
    return;
  }
  for (int k = 0; k < 8; ++k) v[k] = 8 * i + k < count ? x[8 * i + k] : 0.0f;
}

__device__ inline float sum8(const float (&v)[8]) {
  return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}

// sums[r] = weights · x[r] in every lane.
template <int kRows>
__device__ inline void dot_rows(uint32_t type, const void* weights, const float* const (&x)[kRows], bool aligned,
                                int64_t count, float (&sums)[kRows]) {
  float parts[kRows][8];
  for (int r = 0; r < kRows; ++r)
    for (int k = 0; k < 8; ++k) parts[r][k] = 0;
  const auto* row = static_cast<Bytes>(weights);
  with_format(type, [&](auto format) {
    for (int64_t i = lane(); 8 * i < count; i += kWave) {
      float w[8];
      decode8<decltype(format)>(row, i, count, w);
      for (int r = 0; r < kRows; ++r) {
        float v[8];
        load8(x[r], i, count, aligned, v);
        for (int k = 0; k < 8; ++k) parts[r][k] = fma_f32(v[k], w[k], parts[r][k]);
      }
    }
  });
  for (int r = 0; r < kRows; ++r) sums[r] = wave_sum(sum8(parts[r]));
}

}  // namespace strata::gpu
