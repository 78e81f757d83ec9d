// What the kernels of both contracts share: sums of four products at once, loops over constants.
#pragma once

#include "base/dtype.h"
#include "base/simd.h"

namespace strata {
namespace {

// sum16 of four at once: the same pairs meet.
STRATA_SIMD __m128 sums4(F32x16 a, F32x16 b, F32x16 c, F32x16 d) {
#if defined(__AVX512F__)
  const __m512 ab = _mm512_add_ps(_mm512_shuffle_f32x4(a.v, b.v, 0x44), _mm512_shuffle_f32x4(a.v, b.v, 0xee));
  const __m512 cd = _mm512_add_ps(_mm512_shuffle_f32x4(c.v, d.v, 0x44), _mm512_shuffle_f32x4(c.v, d.v, 0xee));
  const __m512 four = _mm512_add_ps(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xdd));
  const __m512 two = _mm512_add_ps(four, _mm512_permute_ps(four, 0x4e));
  const __m512 one = _mm512_add_ps(two, _mm512_permute_ps(two, 0xb1));
  return _mm512_castps512_ps128(_mm512_maskz_compress_ps(0x1111, one));
#else
  const __m256 a8 = _mm256_add_ps(a.lo, a.hi), b8 = _mm256_add_ps(b.lo, b.hi);
  const __m256 c8 = _mm256_add_ps(c.lo, c.hi), d8 = _mm256_add_ps(d.lo, d.hi);
  const __m256 ab = _mm256_add_ps(_mm256_permute2f128_ps(a8, b8, 0x20), _mm256_permute2f128_ps(a8, b8, 0x31));
  const __m256 cd = _mm256_add_ps(_mm256_permute2f128_ps(c8, d8, 0x20), _mm256_permute2f128_ps(c8, d8, 0x31));
  const __m256 two = _mm256_add_ps(_mm256_shuffle_ps(ab, cd, 0x44), _mm256_shuffle_ps(ab, cd, 0xee));
  const __m256 one = _mm256_add_ps(two, _mm256_permute_ps(two, 0xb1));  // a a c c | b b d d
  const __m128 ac = _mm256_castps256_ps128(one), bd = _mm256_extractf128_ps(one, 1);
  return _mm_unpacklo_ps(_mm_shuffle_ps(ac, ac, 0x08), _mm_shuffle_ps(bd, bd, 0x08));
#endif
}

template <int n>
struct Constant {
  static constexpr int value = n;
};
template <int n, class Step>
STRATA_SIMD void repeat(const Step& step) {
  if constexpr (n > 0) {
    repeat<n - 1>(step);
    step(Constant<n - 1>{});
  }
}

// What belongs to a type that has integer levels (rounded.h).
template <template <DType> class Of, class Result>
Result of_level_type(DType type) {
  switch (type) {
    case DType::Q8_0: return Of<DType::Q8_0>::value;
    case DType::Q4_0: return Of<DType::Q4_0>::value;
    case DType::IQ4_NL: return Of<DType::IQ4_NL>::value;
    case DType::MXFP4: return Of<DType::MXFP4>::value;
    case DType::Q2_0: return Of<DType::Q2_0>::value;
    case DType::Q4_K: return Of<DType::Q4_K>::value;
    case DType::Q5_K: return Of<DType::Q5_K>::value;
    case DType::Q6_K: return Of<DType::Q6_K>::value;
    case DType::IQ4_XS: return Of<DType::IQ4_XS>::value;
    case DType::IQ2_XXS: return Of<DType::IQ2_XXS>::value;
    case DType::IQ2_XS: return Of<DType::IQ2_XS>::value;
    case DType::IQ2_S: return Of<DType::IQ2_S>::value;
    case DType::IQ3_XXS: return Of<DType::IQ3_XXS>::value;
    case DType::IQ3_S: return Of<DType::IQ3_S>::value;
    default: return nullptr;
  }
}

}  // namespace
}  // namespace strata
