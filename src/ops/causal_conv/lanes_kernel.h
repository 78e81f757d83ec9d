#pragma once

#include "base/simd.h"
#include "ops/causal_conv/lanes.h"
#include "ops/lane_parts.h"

namespace strata {
namespace {

STRATA_SIMD F32x16 silu16(F32x16 x) { return x / (broadcast16(1.0f) + exp16(zero16() - x)); }

// Taps from the oldest to the newest, fused.
void conv_row(const ConvRow& row) {
  for (int64_t c = 0; c < row.count; c += 16) {
    const int64_t n = row.count - c < 16 ? row.count - c : 16;
    F32x16 sum = zero16();
    for (int64_t j = 0; j < row.width; ++j)
      sum = fma16(load_part(row.taps + j * row.count + c, n), load_part(row.x[j] + c, n), sum);
    store_part(row.y + c, silu16(sum), n);
  }
}

// Four numbers of each of 16 channels, `step` apart, become 16 numbers of each of four taps.
STRATA_SIMD void taps_of_four(const float* p, int64_t step, F32x16 (&taps)[4]) {
#if defined(__AVX512F__)
  const auto group = [ p, step ](int i) __attribute__((always_inline)) {  // channels i, i + 4, i + 8, i + 12
    const __m256 low = _mm256_set_m128(_mm_loadu_ps(p + (i + 4) * step), _mm_loadu_ps(p + i * step));
    const __m256 high = _mm256_set_m128(_mm_loadu_ps(p + (i + 12) * step), _mm_loadu_ps(p + (i + 8) * step));
    return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
  };
  const __m512 a = group(0), b = group(1), c = group(2), d = group(3);
  const __m512 ab01 = _mm512_unpacklo_ps(a, b), ab23 = _mm512_unpackhi_ps(a, b);
  const __m512 cd01 = _mm512_unpacklo_ps(c, d), cd23 = _mm512_unpackhi_ps(c, d);
  taps[0].v = _mm512_shuffle_ps(ab01, cd01, 0x44);
  taps[1].v = _mm512_shuffle_ps(ab01, cd01, 0xee);
  taps[2].v = _mm512_shuffle_ps(ab23, cd23, 0x44);
  taps[3].v = _mm512_shuffle_ps(ab23, cd23, 0xee);
#else
  const auto eight = [step](const float* q, __m256& t0, __m256& t1, __m256& t2, __m256& t3)
      __attribute__((always_inline)) {
    const auto pair = [ q, step ](int i) __attribute__((always_inline)) {  // channels i and i + 4
      return _mm256_set_m128(_mm_loadu_ps(q + (i + 4) * step), _mm_loadu_ps(q + i * step));
    };
    const __m256 a = pair(0), b = pair(1), c = pair(2), d = pair(3);
    const __m256 ab01 = _mm256_unpacklo_ps(a, b), ab23 = _mm256_unpackhi_ps(a, b);
    const __m256 cd01 = _mm256_unpacklo_ps(c, d), cd23 = _mm256_unpackhi_ps(c, d);
    t0 = _mm256_shuffle_ps(ab01, cd01, 0x44);
    t1 = _mm256_shuffle_ps(ab01, cd01, 0xee);
    t2 = _mm256_shuffle_ps(ab23, cd23, 0x44);
    t3 = _mm256_shuffle_ps(ab23, cd23, 0xee);
  };
  eight(p, taps[0].lo, taps[1].lo, taps[2].lo, taps[3].lo);
  eight(p + 8 * step, taps[0].hi, taps[1].hi, taps[2].hi, taps[3].hi);
#endif
}

// The same operations.
void conv_four(const ConvRow& row) {
  for (int64_t c = 0; c < row.count; c += 16) {
    const int64_t n = row.count - c < 16 ? row.count - c : 16;
    float rest[64] = {};
    const float* stored = row.taps + c * row.taps_step;
    if (n < 16)
      for (int64_t i = 0; i < 4 * n; ++i) rest[i] = stored[i / 4 * row.taps_step + i % 4];
    F32x16 taps[4], sum = zero16();
    taps_of_four(n < 16 ? rest : stored, n < 16 ? 4 : row.taps_step, taps);
    for (int j = 0; j < 4; ++j) sum = fma16(taps[j], load_part(row.x[j] + c, n), sum);
    store_part(row.y + c, silu16(sum), n);
  }
}

}  // namespace
}  // namespace strata
