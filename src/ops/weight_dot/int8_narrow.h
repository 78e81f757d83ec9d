// Weight rows of at most four blocks of 32 for AVX-512 with VNNI, sixteen side by side: lane i has row i. A row of them
// is too short for sums of its own: bringing their lanes together takes longer than the products. The sums are those of
// int8_kernel.h, whose other lanes are zeros here.
#pragma once

#include "base/simd.h"
#include "ops/weight_dot/int8_levels.h"
#include "ops/weight_dot/int8_types.h"

namespace strata {
namespace {

constexpr int kNarrowBlocks = 4;

// Types with the scale of a block in its first two bytes.
template <DType type>
constexpr bool kNarrowType = type == DType::Q8_0 || type == DType::Q4_0 || type == DType::IQ4_NL;

STRATA_SIMD bool is_narrow(const Int8Few& a) { return a.in <= kNarrowBlocks * 32; }

// Blocks of eight words, numbers j and j + 4 in register j (of one row, or of several): register j has words j and j +
// 4 of all eight afterwards, in the order of start_slot. Products with a piece of x then add up to sums of halves.
STRATA_SIMD void words_side_by_side(__m512i (&z)[4]) {
  const __m512i low = _mm512_unpacklo_epi32(z[0], z[1]), low2 = _mm512_unpacklo_epi32(z[2], z[3]);
  const __m512i high = _mm512_unpackhi_epi32(z[0], z[1]), high2 = _mm512_unpackhi_epi32(z[2], z[3]);
  z[0] = _mm512_unpacklo_epi64(low, low2);
  z[1] = _mm512_unpackhi_epi64(low, low2);
  z[2] = _mm512_unpacklo_epi64(high, high2);
  z[3] = _mm512_unpackhi_epi64(high, high2);
}

// Eight registers: word k of sixteen weight rows' block j.
template <DType type, int j>
STRATA_SIMD void narrow_words(const uint8_t* const (&w)[16], const void* grid, __m512i (&words)[8]) {
  const auto low = [&](int row) __attribute__((always_inline)) {
    return _mm512_castsi512_si256(Levels<type>::template levels<j>(w[row], grid));
  };
  const auto pair = [&](int row) __attribute__((always_inline)) {
    return _mm512_inserti64x4(_mm512_castsi256_si512(low(row)), low(row + 4), 1);
  };
  __m512i first[4], second[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    first[i] = pair(i);
    second[i] = pair(8 + i);
  }
  words_side_by_side(first);
  words_side_by_side(second);
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) {
    words[k] = _mm512_shuffle_i32x4(first[k], second[k], 0x88);
    words[4 + k] = _mm512_shuffle_i32x4(first[k], second[k], 0xdd);
  }
}

STRATA_SIMD __m512 narrow_scales(const uint8_t* const (&w)[16], int bytes) {
  alignas(32) uint16_t halves[16];
#pragma GCC unroll 16
  for (int row = 0; row < 16; ++row) __builtin_memcpy(halves + row, w[row] + bytes, sizeof(uint16_t));
  return _mm512_cvtph_ps(_mm256_load_si256(reinterpret_cast<const __m256i*>(halves)));
}

template <DType type, int j>
STRATA_SIMD void narrow_block(const Int8Few& a, const uint8_t* const (&w)[16], __m512 (&sums)[kNarrowBlocks][8]) {
  if (j * 32 >= a.in) return;
  __m512i words[8];
  narrow_words<type, j>(w, a.grid, words);
  const __m512 scales = narrow_scales(w, j * Levels<type>::kBytes);
  for (int64_t r = 0; r < a.rows; ++r) {
    const Int8Piece& x = *a.x[r];
    __m512i sum = _mm512_set1_epi32(x.block_start[j]);
    __m512i other = _mm512_setzero_si512();
    const auto word = [&x](int k) __attribute__((always_inline)) {
      int32_t four;
      __builtin_memcpy(&four, x.q + word_place(j, k), sizeof four);
      return _mm512_set1_epi32(four);
    };
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      sum = _mm512_dpbusd_epi32(sum, words[k], word(k));
      other = _mm512_dpbusd_epi32(other, words[4 + k], word(4 + k));
    }
    const __m512 whole = _mm512_cvtepi32_ps(_mm512_add_epi32(sum, other));
    const __m512 scale = _mm512_mul_ps(scales, _mm512_set1_ps(x.scale[j]));
    sums[j][r] = _mm512_fmadd_ps(whole, scale, _mm512_setzero_ps());
  }
}

// Up to sixteen weight rows; `whole`: their last pieces can be read as if they were whole.
template <DType type>
STRATA_SIMD void narrow_columns(const Int8Few& a, int64_t column, int64_t count, bool whole) {
  constexpr int64_t kBytes = kPieceBytes<type>;
  uint8_t copies[16][kBytes];
  const uint8_t* w[16];
  for (int64_t c = 0; c < 16; ++c) {
    w[c] = a.weights + (column + (c < count ? c : count - 1)) * a.weight_stride;
    if (!whole) w[c] = last_piece<type>(w[c], a.in, copies[c]);
  }
  __m512 sums[kNarrowBlocks][8] = {};
  narrow_block<type, 0>(a, w, sums);
  narrow_block<type, 1>(a, w, sums);
  narrow_block<type, 2>(a, w, sums);
  narrow_block<type, 3>(a, w, sums);
  const __mmask16 present = count >= 16 ? static_cast<__mmask16>(0xffff) : first_lanes(count);
  for (int64_t r = 0; r < a.rows; ++r) {
    const __m512 even = _mm512_add_ps(sums[0][r], sums[2][r]), odd = _mm512_add_ps(sums[1][r], sums[3][r]);
    __m512 product = _mm512_mul_ps(_mm512_add_ps(even, odd), _mm512_set1_ps(a.scale));
    if (a.bias != nullptr) product = _mm512_add_ps(product, _mm512_maskz_loadu_ps(present, a.bias + column));
    _mm512_mask_storeu_ps(a.y[r] + column, present, product);
  }
}

template <DType type>
STRATA_SIMD void narrow_rows(const Int8Few& a, int64_t in_place) {
  for (int64_t column = 0; column < a.count; column += 16) {
    const int64_t left = a.count - column;
    narrow_columns<type>(a, column, left < 16 ? left : 16, column + (left < 16 ? left : 16) <= in_place);
  }
}

}  // namespace
}  // namespace strata
