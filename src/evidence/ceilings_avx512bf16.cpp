#include "base/simd.h"
#include "evidence/ceilings_kernels.h"

namespace strata {

#if defined(__AVX512BF16__)
double peak_bf16_avx512(int64_t iterations, float* values) {
  constexpr int kChains = 16;
  __m512 sums[kChains];
  for (int i = 0; i < kChains; ++i) sums[i] = _mm512_set1_ps(values[i]);
  const auto a = reinterpret_cast<__m512bh>(_mm512_loadu_ps(values));
  const auto b = reinterpret_cast<__m512bh>(_mm512_loadu_ps(values + 16));
  for (int64_t n = 0; n < iterations; ++n)
#pragma GCC unroll 16
    for (int i = 0; i < kChains; ++i) sums[i] = _mm512_dpbf16_ps(sums[i], a, b);
  __m512 total = _mm512_setzero_ps();
  for (const __m512& sum : sums) total = _mm512_add_ps(total, sum);
  _mm512_storeu_ps(values + 32, total);
  return 2.0 * 32 * kChains;
}
#else
double peak_bf16_avx512(int64_t, float*) { return 0; }
#endif

}  // namespace strata
