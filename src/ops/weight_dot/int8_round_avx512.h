// Rounds a row of f32 to int8 in blocks of 32, as rounded.h says, bit for bit: 256 elements at a time. Included by the
// kernels for AVX-512 with VNNI.
#pragma once

#include "base/simd.h"
#include "ops/weight_dot/int8_types.h"

namespace strata {
namespace {

// Of the eight blocks of a piece, x as it lies in memory: the largest magnitude's bits. NaN and infinity are above all
// others.
STRATA_SIMD __m256i largest_of_blocks(const __m512 (&x)[16]) {
  const __m512i mask = _mm512_set1_epi32(0x7fffffff);
  __m256i eight[8];
#pragma GCC unroll 8
  for (int b = 0; b < 8; ++b) {
    const __m512i most = _mm512_max_epi32(_mm512_and_si512(_mm512_castps_si512(x[2 * b]), mask),
                                          _mm512_and_si512(_mm512_castps_si512(x[2 * b + 1]), mask));
    eight[b] = _mm256_max_epi32(_mm512_castsi512_si256(most), _mm512_extracti64x4_epi64(most, 1));
  }
  // A tree of transpositions: lanes of a block meet while blocks come side by side.
  __m256i four[4], two[2];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i)
    four[i] =
        _mm256_max_epi32(_mm256_unpacklo_epi32(eight[i], eight[i + 4]), _mm256_unpackhi_epi32(eight[i], eight[i + 4]));
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i)
    two[i] = _mm256_max_epi32(_mm256_unpacklo_epi32(four[i], four[i + 2]), _mm256_unpackhi_epi32(four[i], four[i + 2]));
  // Words of a half: blocks i, i + 2, i + 4, i + 6 of two[i], from half of the lanes each.
  const __m256i low = _mm256_permute2x128_si256(two[0], two[1], 0x20);
  const __m256i high = _mm256_permute2x128_si256(two[0], two[1], 0x31);
  return _mm256_permutevar8x32_epi32(_mm256_max_epi32(low, high), _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

// Words of four elements, the k-th of half h of a block (of 16 halves) in register k at place h.
STRATA_SIMD void words_of_halves(const __m512i (&whole)[16], __m512i (&words)[4]) {
  __m512i quarter[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i)
    quarter[i] = _mm512_packs_epi16(_mm512_packs_epi32(whole[4 * i], whole[4 * i + 1]),
                                    _mm512_packs_epi32(whole[4 * i + 2], whole[4 * i + 3]));
  const __m512i a = _mm512_shuffle_i32x4(quarter[0], quarter[1], 0x44);
  const __m512i b = _mm512_shuffle_i32x4(quarter[0], quarter[1], 0xee);
  const __m512i c = _mm512_shuffle_i32x4(quarter[2], quarter[3], 0x44);
  const __m512i d = _mm512_shuffle_i32x4(quarter[2], quarter[3], 0xee);
  words[0] = _mm512_shuffle_i32x4(a, c, 0x88);
  words[1] = _mm512_shuffle_i32x4(a, c, 0xdd);
  words[2] = _mm512_shuffle_i32x4(b, d, 0x88);
  words[3] = _mm512_shuffle_i32x4(b, d, 0xdd);
}

// Bytes c of four registers' words come together in register c.
STRATA_SIMD void transpose_bytes(__m512i (&words)[4]) {
  const __m512i low = _mm512_set1_epi32(0xffff), even = _mm512_set1_epi32(0x00ff00ff);
  const auto pick = [](__m512i a, __m512i b, __m512i mask) __attribute__((always_inline)) {
    return _mm512_ternarylogic_epi32(mask, a, b, 0xca);  // a where the mask is set, else b
  };
  const __m512i a = pick(words[0], _mm512_slli_epi32(words[2], 16), low);
  const __m512i c = pick(_mm512_srli_epi32(words[0], 16), words[2], low);
  const __m512i b = pick(words[1], _mm512_slli_epi32(words[3], 16), low);
  const __m512i d = pick(_mm512_srli_epi32(words[1], 16), words[3], low);
  words[0] = pick(a, _mm512_slli_epi32(b, 8), even);
  words[1] = pick(_mm512_srli_epi32(a, 8), b, even);
  words[2] = pick(c, _mm512_slli_epi32(d, 8), even);
  words[3] = pick(_mm512_srli_epi32(c, 8), d, even);
}

STRATA_SIMD void round_piece(const float* x, Int8Traits traits, Int8Piece& out) {
  __m512 elements[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) elements[i] = _mm512_loadu_ps(x + 16 * i);
  const __m256i bits = largest_of_blocks(elements);
  const __m256 largest = _mm256_castsi256_ps(bits), most = _mm256_set1_ps(127.0f);
  const __mmask8 finite = _mm256_cmplt_epi32_mask(bits, _mm256_set1_epi32(kInfinityBits));
  const __mmask8 full = _mm256_mask_cmpge_epi32_mask(finite, bits, _mm256_set1_epi32(kSmallestRoundedBits));
  const __m256 inverse = _mm256_maskz_div_ps(full, most, largest);
  const __m256 nan = _mm256_maskz_mov_ps(static_cast<__mmask8>(~finite), _mm256_set1_ps(__builtin_nanf("")));
  const __m256 scale = _mm256_mask_div_ps(nan, full, largest, most);
  const __m512 inverses = _mm512_castps256_ps512(inverse);
  __m512i whole[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) {
    const __m512 factor = _mm512_permutexvar_ps(_mm512_set1_epi32(i / 2), inverses);
    const __mmask16 present = (finite >> (i / 2) & 1) != 0 ? 0xffff : 0;
    whole[i] = _mm512_maskz_cvtps_epi32(present, _mm512_mul_ps(elements[i], factor));
  }
  __m512i words[4], sums = _mm512_setzero_si512();
  words_of_halves(whole, words);
  if (traits.transposed) transpose_bytes(words);
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) sums = _mm512_dpbusd_epi32(sums, _mm512_set1_epi8(1), words[k]);
  const __m512i pairs = _mm512_add_epi32(sums, _mm512_srli_epi64(sums, 32));
  const __m256i blocks = _mm512_cvtepi64_epi32(pairs);
  // The place of half h, as half_slot says.
  const __m512i slots = traits.transposed ? _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
                                          : _mm512_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15);
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) {
    if (!traits.transposed) words[k] = _mm512_permutexvar_epi32(slots, words[k]);
    _mm512_store_si512(out.q + 64 * k, words[k]);
  }
  const __m512i offset = _mm512_set1_epi32(-traits.offset);
  _mm256_store_ps(out.scale, scale);
  if (traits.minima)
    _mm256_store_ps(out.sum, _mm256_mul_ps(scale, _mm256_cvtepi32_ps(blocks)));
  else
    _mm256_store_si256(reinterpret_cast<__m256i*>(out.block_start),
                       _mm256_mullo_epi32(_mm512_castsi512_si256(offset), blocks));
  _mm512_store_si512(out.start, _mm512_mullo_epi32(offset, _mm512_permutexvar_epi32(slots, sums)));
}

void round_row(const float* x, int64_t in, Int8Traits traits, Int8Piece* pieces) {
  int64_t i = 0;
  for (; i + kPiece <= in; i += kPiece) round_piece(x + i, traits, pieces[i / kPiece]);
  if (i == in) return;
  alignas(64) float rest[kPiece] = {};
  __builtin_memcpy(rest, x + i, static_cast<size_t>(in - i) * sizeof(float));
  round_piece(rest, traits, pieces[i / kPiece]);
}

}  // namespace
}  // namespace strata
