// Rounds a row of f32 to int8 in blocks of 32, as rounded.h says, bit for bit. Included by the kernels of each
// instruction set.
#pragma once

#include "base/simd.h"
#include "ops/weight_dot/int8_types.h"

namespace strata {
namespace {

// Sixteen whole numbers of at most eight bits, from f32, ties to even.
STRATA_SIMD __m128i bytes16(F32x16 x) {
#if defined(__AVX512F__)
  return _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(x.v));
#else
  const __m256i words = _mm256_packs_epi32(_mm256_cvtps_epi32(x.lo), _mm256_cvtps_epi32(x.hi));
  const __m256i order = _mm256_permute4x64_epi64(words, 0xd8);
  return _mm_packs_epi16(_mm256_castsi256_si128(order), _mm256_extracti128_si256(order, 1));
#endif
}
// The largest magnitude's bits: NaN and infinity are above all others.
STRATA_SIMD int32_t largest_bits(F32x16 a, F32x16 b) {
#if defined(__AVX512F__)
  const __m512i mask = _mm512_set1_epi32(0x7fffffff);
  const __m512i most = _mm512_max_epi32(_mm512_and_si512(_mm512_castps_si512(a.v), mask),
                                        _mm512_and_si512(_mm512_castps_si512(b.v), mask));
  const __m256i eight = _mm256_max_epi32(_mm512_castsi512_si256(most), _mm512_extracti64x4_epi64(most, 1));
#else
  const auto bits = [](__m256 v) __attribute__((always_inline)) {
    return _mm256_and_si256(_mm256_castps_si256(v), _mm256_set1_epi32(0x7fffffff));
  };
  const __m256i eight =
      _mm256_max_epi32(_mm256_max_epi32(bits(a.lo), bits(a.hi)), _mm256_max_epi32(bits(b.lo), bits(b.hi)));
#endif
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

STRATA_SIMD void put_block(__m128i low, __m128i high, Int8Piece& out, int block) {
#if defined(__AVX512F__)
  int32_t words[8];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(words), low);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(words + 4), high);
#pragma GCC unroll 8
  for (int word = 0; word < 8; ++word) __builtin_memcpy(out.q + word_place(block, word), words + word, sizeof(int32_t));
#else
  __m128i* q = reinterpret_cast<__m128i*>(out.q + 32 * block);
  _mm_storeu_si128(q, low);
  _mm_storeu_si128(q + 1, high);
#endif
}

// Sixteen bytes 4 m + c at 64 c + m.
STRATA_SIMD void put_transposed(__m128i bytes, int8_t* q) {
  const __m128i order = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  uint32_t four[4];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(four), _mm_shuffle_epi8(bytes, order));
  for (int c = 0; c < 4; ++c) __builtin_memcpy(q + 64 * c, four + c, 4);
}

STRATA_SIMD void round_block(F32x16 a, F32x16 b, Int8Traits traits, Int8Piece& out, int block) {
  constexpr int32_t kInfinity = 0x7f800000, kSmallest = (127 - 100) << 23;  // kSmallestRounded
  const int32_t bits = largest_bits(a, b);
  const float largest = __builtin_bit_cast(float, bits);
  const bool finite = bits < kInfinity, empty = !finite || bits < kSmallest;
  const F32x16 inverse = broadcast16(empty ? 0.0f : 127.0f / largest);
  __m128i low = bytes16(a * inverse), high = bytes16(b * inverse);
  if (!finite) low = high = _mm_setzero_si128();
  if (traits.transposed) {
    put_transposed(low, out.q + 8 * block);
    put_transposed(high, out.q + 8 * block + 4);
  } else {
    put_block(low, high, out, block);
  }
  const float scale = !finite ? __builtin_nanf("") : (empty ? 0.0f : largest / 127.0f);
  const int32_t sum_low = sum_of_bytes(low), sum_high = sum_of_bytes(high);
  out.scale[block] = scale;
  out.sum[block] = scale * static_cast<float>(sum_low + sum_high);
  out.start[half_slot(2 * block, traits.transposed)] = -traits.offset * sum_low;
  out.start[half_slot(2 * block + 1, traits.transposed)] = -traits.offset * sum_high;
}

void round_row(const float* x, int64_t in, Int8Traits traits, Int8Piece* pieces) {
  for (int64_t i = 0; i < in; i += 32)
    round_block(load16(x + i), load16(x + i + 16), traits, pieces[i / kPiece], static_cast<int>(i % kPiece / 32));
  for (int64_t i = in; i % kPiece != 0; i += 32)
    round_block(zero16(), zero16(), traits, pieces[i / kPiece], static_cast<int>(i % kPiece / 32));
}

}  // namespace
}  // namespace strata
