#include "evidence/ceilings_kernels.h"
#include "evidence/ceilings_loops.h"

namespace strata {

double peak_f32_avx2(int64_t iterations, float* values) { return peak_f32<6>(iterations, values); }
float read_avx2(const float* values, int64_t n) { return read_sum(values, n); }

#if defined(__AVX2__)
double peak_int8_avx2(int64_t iterations, float* values) {
  constexpr int kChains = 6;
  __m256i sums[kChains];
  for (int i = 0; i < kChains; ++i) sums[i] = _mm256_castps_si256(_mm256_loadu_ps(values + i));
  const __m256i a = sums[0], b = sums[1], ones = _mm256_set1_epi16(1);
  for (int64_t n = 0; n < iterations; ++n)
#pragma GCC unroll 6
    for (int i = 0; i < kChains; ++i) {
      const __m256i pairs = _mm256_maddubs_epi16(_mm256_xor_si256(a, sums[i]), b);
      sums[i] = _mm256_add_epi32(sums[i], _mm256_madd_epi16(pairs, ones));
    }
  __m256i total = sums[0];
  for (int i = 1; i < kChains; ++i) total = _mm256_add_epi32(total, sums[i]);
  _mm256_storeu_ps(values + 32, _mm256_castsi256_ps(total));
  return 2.0 * 32 * kChains;
}
#else
double peak_int8_avx2(int64_t, float*) { return 0; }
#endif

}  // namespace strata
