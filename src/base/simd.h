// Sixteen f32 lanes, the virtual width of the CPU arms, in three forms: one AVX-512 register, two AVX2 registers, or
// plain arithmetic. A kernel is written once on F32x16 in a header and compiled once per instruction set by a small
// file with that set's flags (CMake gives them by file name: *_avx2.cpp, *_avx512.cpp, ...).
//
// The AVX2 and AVX-512 forms fuse multiply and add and give the same bits; the plain form rounds twice.
//
// Everything here has internal linkage on purpose: an inline function compiled with AVX flags must never be the copy
// that the linker keeps for the whole program. Files with such flags include this header and their kernel, no others
// with code (tests/unit/house checks their symbols).
#pragma once

#include <cstdint>

#if defined(__AVX2__)
#include <immintrin.h>
#else
#include <cstring>
#endif

#define STRATA_SIMD [[maybe_unused, gnu::always_inline]] static inline

namespace strata {
namespace {

#if defined(__AVX512F__)

struct F32x16 {
  __m512 v;
};

STRATA_SIMD F32x16 zero16() { return {_mm512_setzero_ps()}; }
STRATA_SIMD F32x16 broadcast16(float x) { return {_mm512_set1_ps(x)}; }
STRATA_SIMD F32x16 load16(const float* p) { return {_mm512_loadu_ps(p)}; }
STRATA_SIMD void store16(float* p, F32x16 a) { _mm512_storeu_ps(p, a.v); }
STRATA_SIMD __mmask16 first_lanes(int64_t n) { return static_cast<__mmask16>((1u << n) - 1); }
STRATA_SIMD F32x16 load16_first(const float* p, int64_t n) { return {_mm512_maskz_loadu_ps(first_lanes(n), p)}; }
STRATA_SIMD void store16_first(float* p, F32x16 a, int64_t n) { _mm512_mask_storeu_ps(p, first_lanes(n), a.v); }
STRATA_SIMD F32x16 operator+(F32x16 a, F32x16 b) { return {_mm512_add_ps(a.v, b.v)}; }
STRATA_SIMD F32x16 operator-(F32x16 a, F32x16 b) { return {_mm512_sub_ps(a.v, b.v)}; }
STRATA_SIMD F32x16 operator*(F32x16 a, F32x16 b) { return {_mm512_mul_ps(a.v, b.v)}; }
STRATA_SIMD F32x16 operator/(F32x16 a, F32x16 b) { return {_mm512_div_ps(a.v, b.v)}; }
STRATA_SIMD F32x16 fma16(F32x16 a, F32x16 b, F32x16 c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
STRATA_SIMD F32x16 max16(F32x16 a, F32x16 b) { return {_mm512_max_ps(a.v, b.v)}; }
STRATA_SIMD F32x16 load16_bf16(const uint16_t* p) {
  const __m256i raw = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(raw), 16))};
}
STRATA_SIMD F32x16 load16_f16(const uint16_t* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
STRATA_SIMD F32x16 broadcast16_f16(uint16_t h) { return {_mm512_cvtph_ps(_mm256_set1_epi16(static_cast<int16_t>(h)))}; }
STRATA_SIMD F32x16 load16_i8(const void* p) {
  return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(static_cast<const __m128i*>(p))))};
}
// Sixteen 4-bit levels (p[i] >> shift & 15) - 8; shift is 0 or 4.
STRATA_SIMD F32x16 load16_level4(const void* p, int shift) {
  const __m512i bytes = _mm512_cvtepu8_epi32(_mm_loadu_si128(static_cast<const __m128i*>(p)));
  const __m512 levels = _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7);
  // The permutation reads the four low bits of an index only.
  return {_mm512_permutexvar_ps(_mm512_srl_epi32(bytes, _mm_cvtsi32_si128(shift)), levels)};
}
// 2^k · a, k a whole number in -252 .. 254 held in f32 lanes with 1.5·2^23 added.
STRATA_SIMD F32x16 scale_by_power(F32x16 a, F32x16 shifted) {
  const __m512i k = _mm512_sub_epi32(_mm512_castps_si512(shifted.v), _mm512_set1_epi32(0x4b400000));
  const __m512i half = _mm512_srai_epi32(k, 1), bias = _mm512_set1_epi32(127);
  const __m512 first = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(half, bias), 23));
  const __m512 second = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(_mm512_sub_epi32(k, half), bias), 23));
  return {_mm512_mul_ps(_mm512_mul_ps(a.v, first), second)};
}
// x where a < b is false (so also where one is NaN), else y.
STRATA_SIMD F32x16 if_less(F32x16 a, F32x16 b, F32x16 y, F32x16 x) {
  return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ), x.v, y.v)};
}
STRATA_SIMD bool any_nan(F32x16 a) { return _mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q) != 0; }
STRATA_SIMD __m256 low_half(F32x16 a) { return _mm512_castps512_ps256(a.v); }
STRATA_SIMD __m256 high_half(F32x16 a) { return _mm512_extractf32x8_ps(a.v, 1); }

#elif defined(__AVX2__)

struct F32x16 {
  __m256 lo, hi;
};

STRATA_SIMD F32x16 zero16() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
STRATA_SIMD F32x16 broadcast16(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
STRATA_SIMD F32x16 load16(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
STRATA_SIMD void store16(float* p, F32x16 a) {
  _mm256_storeu_ps(p, a.lo);
  _mm256_storeu_ps(p + 8, a.hi);
}
// All ones in the first n of 8 lanes; n below 0 counts as 0, above 8 as 8.
STRATA_SIMD __m256i first_lanes(int64_t n) {
  const int count = n < 0 ? 0 : (n > 8 ? 8 : static_cast<int>(n));
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
STRATA_SIMD F32x16 load16_first(const float* p, int64_t n) {
  return {_mm256_maskload_ps(p, first_lanes(n)), _mm256_maskload_ps(p + 8, first_lanes(n - 8))};
}
STRATA_SIMD void store16_first(float* p, F32x16 a, int64_t n) {
  _mm256_maskstore_ps(p, first_lanes(n), a.lo);
  _mm256_maskstore_ps(p + 8, first_lanes(n - 8), a.hi);
}
STRATA_SIMD F32x16 operator+(F32x16 a, F32x16 b) { return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)}; }
STRATA_SIMD F32x16 operator-(F32x16 a, F32x16 b) { return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)}; }
STRATA_SIMD F32x16 operator*(F32x16 a, F32x16 b) { return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)}; }
STRATA_SIMD F32x16 operator/(F32x16 a, F32x16 b) { return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)}; }
STRATA_SIMD F32x16 fma16(F32x16 a, F32x16 b, F32x16 c) {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
STRATA_SIMD F32x16 max16(F32x16 a, F32x16 b) { return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)}; }
STRATA_SIMD __m256 bf16_half(const uint16_t* p) {
  const __m128i raw = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(raw), 16));
}
STRATA_SIMD F32x16 load16_bf16(const uint16_t* p) { return {bf16_half(p), bf16_half(p + 8)}; }
STRATA_SIMD F32x16 load16_f16(const uint16_t* p) {
  return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
          _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)))};
}
STRATA_SIMD F32x16 broadcast16_f16(uint16_t h) {
  const __m256 eight = _mm256_cvtph_ps(_mm_set1_epi16(static_cast<int16_t>(h)));
  return {eight, eight};
}
STRATA_SIMD F32x16 load16_i8(const void* p) {
  const __m128i bytes = _mm_loadu_si128(static_cast<const __m128i*>(p));
  return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)),
          _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8)))};
}
STRATA_SIMD F32x16 load16_level4(const void* p, int shift) {
  const __m128i two = _mm_srl_epi16(_mm_loadu_si128(static_cast<const __m128i*>(p)), _mm_cvtsi32_si128(shift));
  const __m128i bytes = _mm_sub_epi8(_mm_and_si128(two, _mm_set1_epi8(15)), _mm_set1_epi8(8));
  return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)),
          _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8)))};
}
STRATA_SIMD __m256 scale_half(__m256 a, __m256 shifted) {
  const __m256i k = _mm256_sub_epi32(_mm256_castps_si256(shifted), _mm256_set1_epi32(0x4b400000));
  const __m256i half = _mm256_srai_epi32(k, 1), bias = _mm256_set1_epi32(127);
  const __m256 first = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(half, bias), 23));
  const __m256 second = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(k, half), bias), 23));
  return _mm256_mul_ps(_mm256_mul_ps(a, first), second);
}
STRATA_SIMD F32x16 scale_by_power(F32x16 a, F32x16 shifted) {
  return {scale_half(a.lo, shifted.lo), scale_half(a.hi, shifted.hi)};
}
STRATA_SIMD F32x16 if_less(F32x16 a, F32x16 b, F32x16 y, F32x16 x) {
  return {_mm256_blendv_ps(x.lo, y.lo, _mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ)),
          _mm256_blendv_ps(x.hi, y.hi, _mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ))};
}
STRATA_SIMD bool any_nan(F32x16 a) {
  const __m256 unordered =
      _mm256_or_ps(_mm256_cmp_ps(a.lo, a.lo, _CMP_UNORD_Q), _mm256_cmp_ps(a.hi, a.hi, _CMP_UNORD_Q));
  return _mm256_movemask_ps(unordered) != 0;
}
STRATA_SIMD __m256 low_half(F32x16 a) { return a.lo; }
STRATA_SIMD __m256 high_half(F32x16 a) { return a.hi; }

#else

// Vector types of the compiler (GCC and clang): four lanes map to one register on any target of today.
using F32x4 = float __attribute__((vector_size(16)));
using I32x4 = int32_t __attribute__((vector_size(16)));

struct F32x16 {
  F32x4 v[4];
};

STRATA_SIMD F32x16 zero16() { return F32x16{}; }
STRATA_SIMD F32x16 broadcast16(float x) {
  const F32x4 four = {x, x, x, x};
  return {{four, four, four, four}};
}
STRATA_SIMD F32x16 load16(const float* p) {
  F32x16 r;
  std::memcpy(&r, p, sizeof r);
  return r;
}
STRATA_SIMD void store16(float* p, F32x16 a) { std::memcpy(p, &a, sizeof a); }
STRATA_SIMD F32x16 load16_first(const float* p, int64_t n) {
  F32x16 r{};
  std::memcpy(&r, p, static_cast<size_t>(n) * sizeof(float));
  return r;
}
STRATA_SIMD void store16_first(float* p, F32x16 a, int64_t n) {
  std::memcpy(p, &a, static_cast<size_t>(n) * sizeof(float));
}
template <class Quad>
STRATA_SIMD F32x16 each_quad(Quad quad) {
  return {{quad(0), quad(1), quad(2), quad(3)}};
}
STRATA_SIMD F32x16 operator+(F32x16 a, F32x16 b) {
  return each_quad([&](int i) { return a.v[i] + b.v[i]; });
}
STRATA_SIMD F32x16 operator-(F32x16 a, F32x16 b) {
  return each_quad([&](int i) { return a.v[i] - b.v[i]; });
}
STRATA_SIMD F32x16 operator*(F32x16 a, F32x16 b) {
  return each_quad([&](int i) { return a.v[i] * b.v[i]; });
}
STRATA_SIMD F32x16 operator/(F32x16 a, F32x16 b) {
  return each_quad([&](int i) { return a.v[i] / b.v[i]; });
}
STRATA_SIMD F32x16 fma16(F32x16 a, F32x16 b, F32x16 c) {
  return each_quad([&](int i) { return a.v[i] * b.v[i] + c.v[i]; });
}
STRATA_SIMD F32x16 max16(F32x16 a, F32x16 b) {
  return each_quad([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
}
STRATA_SIMD F32x16 load16_bf16(const uint16_t* p) {
  return each_quad([&](int i) {
    const uint16_t* q = p + 4 * i;
    const I32x4 words = {q[0], q[1], q[2], q[3]};
    return (F32x4)(words << 16);
  });
}
STRATA_SIMD F32x16 load16_f16(const uint16_t* p) {
  return each_quad([&](int i) {
    const I32x4 half = {p[4 * i], p[4 * i + 1], p[4 * i + 2], p[4 * i + 3]};
    const I32x4 sign = (half & 0x8000) << 16, rest = half & 0x7fff;
    // Shifted into place the exponent is 112 too small; the product is exact, also for subnormals.
    const I32x4 finite = (I32x4)((F32x4)(rest << 13) * 0x1p112f), special = (rest << 13) | 0x7f800000;
    return (F32x4)(sign | (rest >= 0x7c00 ? special : finite));
  });
}
STRATA_SIMD F32x16 broadcast16_f16(uint16_t h) {
  const uint16_t all[16] = {h, h, h, h, h, h, h, h, h, h, h, h, h, h, h, h};
  return load16_f16(all);
}
template <class Level>
STRATA_SIMD F32x16 whole_numbers(Level level) {
  return each_quad([&](int i) {
    const I32x4 four = {level(4 * i), level(4 * i + 1), level(4 * i + 2), level(4 * i + 3)};
    return __builtin_convertvector(four, F32x4);
  });
}
STRATA_SIMD F32x16 load16_i8(const void* p) {
  return whole_numbers([&](int i) { return static_cast<const int8_t*>(p)[i]; });
}
STRATA_SIMD F32x16 load16_level4(const void* p, int shift) {
  return whole_numbers([&](int i) { return (static_cast<const uint8_t*>(p)[i] >> shift & 15) - 8; });
}
STRATA_SIMD F32x16 scale_by_power(F32x16 a, F32x16 shifted) {
  return each_quad([&](int i) {
    const I32x4 k = (I32x4)shifted.v[i] - 0x4b400000, half = k >> 1;
    return a.v[i] * (F32x4)((half + 127) << 23) * (F32x4)((k - half + 127) << 23);
  });
}
STRATA_SIMD F32x16 if_less(F32x16 a, F32x16 b, F32x16 y, F32x16 x) {
  return each_quad([&](int i) { return a.v[i] < b.v[i] ? y.v[i] : x.v[i]; });
}
STRATA_SIMD bool any_nan(F32x16 a) {
  I32x4 any{};
  for (const F32x4& four : a.v) any |= four != four;
  return (any[0] | any[1] | any[2] | any[3]) != 0;
}

#endif

// Sums of the lanes by one tree: l + (l + 8), then 4, 2, 1 apart, as reduce_lanes of fmath.h.
#if defined(__AVX2__)
STRATA_SIMD float sum16(F32x16 a) {
  const __m256 eight = _mm256_add_ps(low_half(a), high_half(a));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}
#else
STRATA_SIMD float sum16(F32x16 a) {
  const F32x4 four = (a.v[0] + a.v[2]) + (a.v[1] + a.v[3]);
  return (four[0] + four[2]) + (four[1] + four[3]);
}
#endif
// The largest lane; meaningless when one is NaN.
STRATA_SIMD float max_of16(F32x16 a) {
  float lanes[16], best;
  store16(lanes, a);
  best = lanes[0];
  for (int i = 1; i < 16; ++i) best = lanes[i] > best ? lanes[i] : best;
  return best;
}

// relu that keeps NaN; -0 stays -0.
STRATA_SIMD F32x16 relu16(F32x16 a) { return if_less(a, zero16(), zero16(), a); }

// e^x within 2 ulp for normal results, 0 below -87.33, infinity above 88.72, NaN stays: exp_f32 of fmath.h lane by
// lane, with fused multiply-adds where the set has them.
STRATA_SIMD F32x16 exp16(F32x16 x) {
  const F32x16 low = broadcast16(-88.0f), high = broadcast16(89.0f), magic = broadcast16(12582912.0f);
  const F32x16 clamped = if_less(x, low, low, if_less(high, x, high, x));
  const F32x16 shifted = fma16(clamped, broadcast16(1.44269504088896341f), magic);
  const F32x16 n = shifted - magic;
  const F32x16 r = fma16(n, broadcast16(2.12194440054690583e-4f), fma16(n, broadcast16(-0.693359375f), clamped));
  F32x16 p = broadcast16(1.0f / 5040.0f);
  p = fma16(p, r, broadcast16(1.0f / 720.0f));
  p = fma16(p, r, broadcast16(1.0f / 120.0f));
  p = fma16(p, r, broadcast16(1.0f / 24.0f));
  p = fma16(p, r, broadcast16(1.0f / 6.0f));
  p = fma16(p, r, broadcast16(0.5f));
  p = fma16(p, r * r, r) + broadcast16(1.0f);
  const F32x16 result = scale_by_power(p, shifted);
  const F32x16 flushed = if_less(x, broadcast16(-87.33654f), zero16(), result);
  return if_less(broadcast16(88.72283f), x, broadcast16(__builtin_inff()), flushed);
}

}  // namespace
}  // namespace strata
