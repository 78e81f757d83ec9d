// Unpackers of 256 weights of lattice types for AVX-512: rows of the lattice are words of 16 bits (packed_lattice_grid)
// that permutations look up in registers, 32 at a time. Included
// before int8_kernel.h.
#pragma once

#include "ops/weight_dot/int8_levels.h"

namespace strata {
namespace {

// table[index] of 32 words, indices of `bits` bits.
template <int bits>
STRATA_SIMD __m512i looked_up(const uint16_t* table, __m512i index) {
  if constexpr (bits == 6) {
    return _mm512_permutex2var_epi16(_mm512_loadu_si512(table), index, _mm512_loadu_si512(table + 32));
  } else {
    constexpr int kHalf = 1 << (bits - 1);
    const __m512i low = looked_up<bits - 1>(table, index), high = looked_up<bits - 1>(table + kHalf, index);
    return _mm512_mask_blend_epi16(_mm512_test_epi16_mask(index, _mm512_set1_epi16(kHalf)), low, high);
  }
}

// Four fields of four bits of eight words each at `j`, from rows of blocks 0 to 3 and of blocks 4 to 7.
template <int j>
STRATA_SIMD __m512i nibbles_of(__m512i low, __m512i high) {
  const __m512i twice = _mm512_add_epi32(  // dword k of both halves: word 8 j + k, twice
      _mm512_setr_epi32(0, 0x10001, 0x20002, 0x30003, 0x40004, 0x50005, 0x60006, 0x70007, 0x200020, 0x210021, 0x220022,
                        0x230023, 0x240024, 0x250025, 0x260026, 0x270027),
      _mm512_set1_epi32(0x80008 * j));
  return _mm512_srlv_epi16(_mm512_permutex2var_epi16(low, twice, high), _mm512_set1_epi32(4 << 16));
}
// Eight fields of two bits of four words each, from rows of blocks j and j + 4.
template <int j>
STRATA_SIMD __m512i pairs_of(__m512i rows) {
  const __m512i four =
      _mm512_add_epi16(_mm512_setr_epi64(0, 0x1000100010001, 0x2000200020002, 0x3000300030003, 0x10001000100010,
                                         0x11001100110011, 0x12001200120012, 0x13001300130013),
                       _mm512_set1_epi16(4 * j));
  const __m512i fields = _mm512_srlv_epi16(_mm512_permutexvar_epi16(four, rows), _mm512_set1_epi64(0x6000400020000));
  return _mm512_and_si512(fields, _mm512_set1_epi8(3));
}

// Levels raised by 128, with bit i of the signs: 0 - (128 + v) is 128 - v in bytes.
STRATA_SIMD __m512i with_signs(__m512i raised, uint64_t signs) {
  return _mm512_mask_sub_epi8(raised, signs, _mm512_setzero_si512(), raised);
}

// Signs of eight blocks, those of blocks j and j + 4 side by side.
struct BlockSigns {
  uint64_t pair[4];
};
STRATA_SIMD BlockSigns pairs_of_signs(__m256i blocks) {
  BlockSigns signs;
  store256(signs.pair, _mm256_permutevar8x32_epi32(blocks, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)));
  return signs;
}
STRATA_SIMD __m256i signs_of_words(__m256i words) {
  const __m256i low = _mm256_or_si256(bits_of(words, 0x7f), bits_of(_mm256_slli_epi32(words, 1), 0x7f00));
  const __m256i high =
      _mm256_or_si256(bits_of(_mm256_slli_epi32(words, 2), 0x7f0000), bits_of(_mm256_slli_epi32(words, 3), 0x7f000000));
  return even_signs(_mm256_or_si256(low, high));
}

constexpr Levels16 kTwoBits = {8, 25, 43, 0, 8, 25, 43, 0, 8, 25, 43, 0, 8, 25, 43, 0};
constexpr Levels16 kThreeBits = {4, 12, 20, 28, 36, 44, 52, 62, 4, 12, 20, 28, 36, 44, 52, 62};

STRATA_SIMD void two_bit_levels(__m512i rows, const BlockSigns& signs, __m512i (&z)[4]) {
  const __m512i table = raised_table<kTwoBits, 128>();
  z[0] = with_signs(_mm512_shuffle_epi8(table, pairs_of<0>(rows)), signs.pair[0]);
  z[1] = with_signs(_mm512_shuffle_epi8(table, pairs_of<1>(rows)), signs.pair[1]);
  z[2] = with_signs(_mm512_shuffle_epi8(table, pairs_of<2>(rows)), signs.pair[2]);
  z[3] = with_signs(_mm512_shuffle_epi8(table, pairs_of<3>(rows)), signs.pair[3]);
}

// unpack(p, grid, z): the four registers of a piece.
template <DType type>
struct LatticePiece;

template <>
struct LatticePiece<DType::IQ2_XXS> {
  STRATA_SIMD void unpack(const uint8_t* p, const uint16_t* grid, __m512i (&z)[4]) {
    const __m512i words = _mm512_loadu_si512(p + 2);  // of each block four indices and a word
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
    const __m512i apart = _mm512_permutexvar_epi32(even, words);
    const __m512i rows = looked_up<8>(grid, _mm512_cvtepu8_epi16(_mm512_castsi512_si256(apart)));
    two_bit_levels(rows, pairs_of_signs(signs_of_words(_mm512_extracti64x4_epi64(apart, 1))), z);
  }
};

template <>
struct LatticePiece<DType::IQ2_XS> {
  STRATA_SIMD void unpack(const uint8_t* p, const uint16_t* grid, __m512i (&z)[4]) {
    const __m512i words = _mm512_loadu_si512(p + 2);
    const __m512i rows = looked_up<9>(grid, words);
    two_bit_levels(rows, pairs_of_signs(even_signs(_mm512_cvtepi16_epi8(_mm512_srli_epi16(words, 9)))), z);
  }
};

template <>
struct LatticePiece<DType::IQ2_S> {
  STRATA_SIMD void unpack(const uint8_t* p, const uint16_t* grid, __m512i (&z)[4]) {
    const __m512i low = _mm512_cvtepu8_epi16(load256(p + 2));
    const __m512i each = _mm512_cvtepu8_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p + 66)));
    const __m512i four = _mm512_shuffle_epi8(each, _mm512_set4_epi32(0x08080808, 0x08080808, 0x00000000, 0x00000000));
    // Two bits of a byte for each of four words, above the eight of the index.
    const __m512i high =
        _mm512_and_si512(_mm512_sllv_epi16(four, _mm512_set1_epi64(0x2000400060008)), _mm512_set1_epi16(0x300));
    const __m512i rows = looked_up<10>(grid, _mm512_or_si512(low, high));
    two_bit_levels(rows, pairs_of_signs(load256(p + 34)), z);
  }
};

template <>
struct LatticePiece<DType::IQ3_XXS> {
  template <int j>
  STRATA_SIMD __m512i levels(__m512i low, __m512i high, const BlockSigns& signs) {
    const __m512i fields = _mm512_and_si512(nibbles_of<j>(low, high), _mm512_set1_epi8(15));
    return with_signs(_mm512_shuffle_epi8(raised_table<kThreeBits, 128>(), fields), signs.pair[j]);
  }
  STRATA_SIMD void unpack(const uint8_t* p, const uint16_t* grid, __m512i (&z)[4]) {
    const __m512i low = looked_up<8>(grid, _mm512_cvtepu8_epi16(load256(p + 2)));
    const __m512i high = looked_up<8>(grid, _mm512_cvtepu8_epi16(load256(p + 34)));
    const BlockSigns signs = pairs_of_signs(signs_of_words(load256(p + 66)));
    z[0] = levels<0>(low, high, signs);
    z[1] = levels<1>(low, high, signs);
    z[2] = levels<2>(low, high, signs);
    z[3] = levels<3>(low, high, signs);
  }
};

template <>
struct LatticePiece<DType::IQ3_S> {
  template <int j>
  STRATA_SIMD __m512i levels(__m512i low, __m512i high, const BlockSigns& signs) {
    const __m512i fields = _mm512_and_si512(nibbles_of<j>(low, high), _mm512_set1_epi8(15));
    return with_signs(_mm512_or_si512(fields, _mm512_set1_epi8(-128)), signs.pair[j]);
  }
  STRATA_SIMD __m512i rows(const uint8_t* p, const uint16_t* grid, uint32_t ninth) {
    const __m512i index = _mm512_cvtepu8_epi16(load256(p));
    return looked_up<9>(grid, _mm512_mask_add_epi16(index, ninth, index, _mm512_set1_epi16(256)));
  }
  STRATA_SIMD void unpack(const uint8_t* p, const uint16_t* grid, __m512i (&z)[4]) {
    const __m512i low = rows(p + 2, grid, dword_at(p + 66)), high = rows(p + 34, grid, dword_at(p + 70));
    const BlockSigns signs = pairs_of_signs(load256(p + 74));
    z[0] = levels<0>(low, high, signs);
    z[1] = levels<1>(low, high, signs);
    z[2] = levels<2>(low, high, signs);
    z[3] = levels<3>(low, high, signs);
  }
};

// What int8_kernel.h asks for.
template <DType type>
struct Lattice {
  static constexpr bool kTransposed = false;
  static constexpr int kStep = 1;
  STRATA_SIMD void unpack_two(const uint8_t* p, const uint8_t* q, const void* grid, __m512i (&first)[4],
                              __m512i (&second)[4]) {
    LatticePiece<type>::unpack(p, static_cast<const uint16_t*>(grid), first);
    LatticePiece<type>::unpack(q, static_cast<const uint16_t*>(grid), second);
  }
  STRATA_SIMD __m512 scales(const uint8_t* p, const uint8_t* q) {
    return both8(Levels<type>::scales(p), Levels<type>::scales(q));
  }
};

}  // namespace
}  // namespace strata
