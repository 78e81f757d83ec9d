#include "base/simd.h"
#include "evidence/ceilings_kernels.h"

namespace strata {

#if defined(__AVX512VNNI__)
double peak_int8_avx512(int64_t iterations, float* values) {
  constexpr int kChains = 16;
  __m512i sums[kChains];
  for (int i = 0; i < kChains; ++i) sums[i] = _mm512_castps_si512(_mm512_set1_ps(values[i]));
  const __m512i a = _mm512_castps_si512(_mm512_loadu_ps(values));
  const __m512i b = _mm512_castps_si512(_mm512_loadu_ps(values + 16));
  for (int64_t n = 0; n < iterations; ++n)
#pragma GCC unroll 16
    for (int i = 0; i < kChains; ++i) sums[i] = _mm512_dpbusd_epi32(sums[i], a, b);
  __m512i total = _mm512_setzero_si512();
  for (const __m512i& sum : sums) total = _mm512_add_epi32(total, sum);
  _mm512_storeu_ps(values + 32, _mm512_castsi512_ps(total));
  return 2.0 * 64 * kChains;
}
#else
double peak_int8_avx512(int64_t, float*) { return 0; }
#endif

}  // namespace strata
