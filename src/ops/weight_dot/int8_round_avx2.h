// Rounds a row of f32 to int8 in blocks of 32, as rounded.h says, bit for bit. Included by the kernels for AVX2.
#pragma once

#include "base/simd.h"
#include "ops/weight_dot/int8_types.h"

namespace strata {
namespace {

// Sixteen whole numbers of at most eight bits, from f32, ties to even.
STRATA_SIMD __m128i bytes16(F32x16 x) {
  const __m256i words = _mm256_packs_epi32(_mm256_cvtps_epi32(x.lo), _mm256_cvtps_epi32(x.hi));
  const __m256i order = _mm256_permute4x64_epi64(words, 0xd8);
  return _mm_packs_epi16(_mm256_castsi256_si128(order), _mm256_extracti128_si256(order, 1));
}
// The largest magnitude's bits: NaN and infinity are above all others.
STRATA_SIMD int32_t largest_bits(F32x16 a, F32x16 b) {
  const auto bits = [](__m256 v) __attribute__((always_inline)) {
    return _mm256_and_si256(_mm256_castps_si256(v), _mm256_set1_epi32(0x7fffffff));
  };
  const __m256i eight =
      _mm256_max_epi32(_mm256_max_epi32(bits(a.lo), bits(a.hi)), _mm256_max_epi32(bits(b.lo), bits(b.hi)));
  __m128i four = _mm_max_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));
  four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0xb1));
  return _mm_cvtsi128_si32(four);
}
// Sums of the signed bytes below and above place 16.
STRATA_SIMD int32_t sum_of_bytes(__m128i bytes) {
  const __m128i words = _mm_maddubs_epi16(_mm_set1_epi8(1), bytes);
  __m128i four = _mm_madd_epi16(words, _mm_set1_epi16(1));
  four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
  four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0xb1));
  return _mm_cvtsi128_si32(four);
}

STRATA_SIMD void round_block(F32x16 a, F32x16 b, Int8Traits traits, Int8Piece& out, int block) {
  const int32_t bits = largest_bits(a, b);
  const float largest = __builtin_bit_cast(float, bits);
  const bool finite = bits < kInfinityBits, empty = !finite || bits < kSmallestRoundedBits;
  const F32x16 inverse = broadcast16(empty ? 0.0f : 127.0f / largest);
  __m128i low = bytes16(a * inverse), high = bytes16(b * inverse);
  if (!finite) low = high = _mm_setzero_si128();
  auto* q = reinterpret_cast<__m128i*>(out.q + 32 * block);
  _mm_storeu_si128(q, low);
  _mm_storeu_si128(q + 1, high);
  const float scale = !finite ? __builtin_nanf("") : (empty ? 0.0f : largest / 127.0f);
  const int32_t sum_low = sum_of_bytes(low), sum_high = sum_of_bytes(high);
  out.scale[block] = scale;
  if (traits.minima)
    out.sum[block] = scale * static_cast<float>(sum_low + sum_high);
  else
    out.block_start[block] = -traits.offset * (sum_low + sum_high);
  out.start[start_slot(2 * block)] = -traits.offset * sum_low;
  out.start[start_slot(2 * block + 1)] = -traits.offset * sum_high;
}

void round_row(const float* x, int64_t in, Int8Traits traits, Int8Piece* pieces) {
  for (int64_t i = 0; i < in; i += 32)
    round_block(load16(x + i), load16(x + i + 16), traits, pieces[i / kPiece], static_cast<int>(i % kPiece / 32));
  for (int64_t i = in; i % kPiece != 0; i += 32)
    round_block(zero16(), zero16(), traits, pieces[i / kPiece], static_cast<int>(i % kPiece / 32));
}

}  // namespace
}  // namespace strata
