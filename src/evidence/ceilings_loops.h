// The f32 loops on F32x16, included by the file of each instruction set. kChains independent sums keep the multiply-add
// units busy in spite of their latency.
#pragma once

#include "base/simd.h"

namespace strata {
namespace {

template <int kChains>
STRATA_SIMD double peak_f32(int64_t iterations, float* values) {
  F32x16 sums[kChains];
  for (int i = 0; i < kChains; ++i) sums[i] = broadcast16(values[i]);
  const F32x16 a = load16(values), b = load16(values + 16);
  for (int64_t n = 0; n < iterations; ++n)
#pragma GCC unroll 32
    for (int i = 0; i < kChains; ++i) sums[i] = fma16(sums[i], a, b);
  F32x16 total = zero16();
  for (int i = 0; i < kChains; ++i) total = total + sums[i];
  store16(values + 32, total);
  return 2.0 * 16 * kChains;
}

STRATA_SIMD float read_sum(const float* values, int64_t n) {
  F32x16 sums[8];
  for (F32x16& sum : sums) sum = zero16();
  int64_t i = 0;
  for (; i + 128 <= n; i += 128)
#pragma GCC unroll 8
    for (int k = 0; k < 8; ++k) sums[k] = sums[k] + load16(values + i + 16 * k);
  float total = 0;
  for (const F32x16& sum : sums) total += sum16(sum);
  for (; i < n; ++i) total += values[i];
  return total;
}

}  // namespace
}  // namespace strata
