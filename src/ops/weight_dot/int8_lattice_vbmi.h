// Unpackers of 256 weights of lattice types for AVX-512 with VBMI and GFNI: rows of the lattice are bytes in two planes
// (lattice_planes) that permutations look up in registers, 64 at a time. Fields of bits come out in the order in which
// rounded elements lie transposed (Int8Piece), so that nothing is moved any more. Included before int8_kernel.h.
#pragma once

#include "ops/weight_dot/int8_levels.h"

namespace strata {
namespace {

// Bits 6 and above of 64 indices; the permutations read bits 0 to 6.
struct HighBits {
  __mmask64 seventh, eighth, ninth;
};

// plane[index] of 64 bytes, indices of `bits` bits.
template <int bits>
STRATA_SIMD __m512i looked_up(const uint8_t* plane, __m512i index, const HighBits& high) {
  if constexpr (bits == 7) {
    return _mm512_permutex2var_epi8(_mm512_loadu_si512(plane), index, _mm512_loadu_si512(plane + 64));
  } else {
    const __m512i low = looked_up<bits - 1>(plane, index, high);
    const __m512i above = looked_up<bits - 1>(plane + (1 << (bits - 1)), index, high);
    const __mmask64 bit = bits == 8 ? high.seventh : (bits == 9 ? high.eighth : high.ninth);
    return _mm512_mask_blend_epi8(bit, low, above);
  }
}

// Byte i of each eight: the bits of the eight bytes of `words` from `first` + `step` i on.
template <int first, int step>
STRATA_SIMD __m512i windows(__m512i words) {
  constexpr auto at = [](int i) { return static_cast<uint64_t>((first + step * i) % 64) << 8 * i; };
  constexpr uint64_t places = at(0) | at(1) | at(2) | at(3) | at(4) | at(5) | at(6) | at(7);
  return _mm512_multishift_epi64_epi8(_mm512_set1_epi64(static_cast<int64_t>(places)), words);
}
// Bits of bytes from a matrix of GFNI: its highest byte masks what bit 0 is the parity of.
template <uint64_t matrix>
STRATA_SIMD __m512i bits_by(__m512i bytes) {
  return _mm512_gf2p8affine_epi64_epi8(bytes, _mm512_set1_epi64(static_cast<int64_t>(matrix)), 0);
}
constexpr uint64_t kSevenAndParity = 0x010204081020407f;  // bits 0 to 6, and above them their parity
constexpr uint64_t kUpperAndParity = 0x02040810204080fe;  // the same of bits 1 to 7

// Three-bit levels, one piece at a time. A negative level is the complement of the nibble of lattice_planes. Signs are
// the low four bits of each byte, of the columns of one row.
template <int bits>
STRATA_SIMD void three_bit_fields(__m512i index, __mmask64 ninth_bit, const void* grid, __m512i signs,
                                  __m512i (&z)[4]) {
  const auto* plane = static_cast<const uint8_t*>(grid);
  const HighBits high = {_mm512_movepi8_mask(index), ninth_bit, 0};
  constexpr uint64_t kTwo = 0x0101010102020202, kNextTwo = 0x0404040408080808;  // a bit in all of a nibble
  const __m512i a = _mm512_xor_si512(looked_up<bits>(plane, index, high), bits_by<kTwo>(signs));
  const __m512i b = _mm512_xor_si512(looked_up<bits>(plane + (1 << bits), index, high), bits_by<kNextTwo>(signs));
  const __m512i low = _mm512_set1_epi8(15);
  z[0] = _mm512_and_si512(a, low);
  z[1] = _mm512_and_si512(_mm512_srli_epi16(a, 4), low);
  z[2] = _mm512_and_si512(b, low);
  z[3] = _mm512_and_si512(_mm512_srli_epi16(b, 4), low);
}

constexpr Levels16 kSignedThreeBits = {-62, -52, -44, -36, -28, -20, -12, -4, 4, 12, 20, 28, 36, 44, 52, 62};

// Two-bit levels of two pieces. Rows and their signs (eight bits) lie side by side: eight of the first, eight of the
// second, and so on. A place in the table is a field of two bits below a sign; a permutation reads six bits of it, so
// that the table is there eight times.
template <int j>
STRATA_SIMD __m512i two_bit_levels(__m512i fields, __m512i signs) {
  const auto raised = [](int code, int64_t level) {
    return (128 + level) << 8 * code | (128 - level) << 8 * (code + 4);
  };
  const __m512i table = _mm512_set1_epi64(raised(0, 8) | raised(1, 25) | raised(2, 43));
  const __m512i field = j == 0 ? fields : _mm512_srli_epi16(fields, 2 * j);
  const __m512i sign =
      j < 2 ? _mm512_slli_epi16(signs, j < 2 ? 2 - j : 0) : _mm512_srli_epi16(signs, j < 2 ? 0 : j - 2);
  constexpr int kSelect = 0xca;  // the first's bits choose
  return _mm512_permutexvar_epi8(_mm512_ternarylogic_epi64(_mm512_set1_epi8(3), field, sign, kSelect), table);
}
STRATA_SIMD void two_bit_piece(__m512i fields, __m512i signs, __m512i (&z)[4]) {
  z[0] = two_bit_levels<0>(fields, signs);
  z[1] = two_bit_levels<1>(fields, signs);
  z[2] = two_bit_levels<2>(fields, signs);
  z[3] = two_bit_levels<3>(fields, signs);
}
template <int bits>
STRATA_SIMD void two_bit_pieces(__m512i index, const HighBits& high, const void* grid, __m512i signs,
                                __m512i (&first)[4], __m512i (&second)[4]) {
  const auto* plane = static_cast<const uint8_t*>(grid);
  const __m512i a = looked_up<bits>(plane, index, high), b = looked_up<bits>(plane + (1 << bits), index, high);
  const __m512i others = _mm512_srli_epi16(signs, 4);
  two_bit_piece(_mm512_unpacklo_epi8(a, b), _mm512_unpacklo_epi8(signs, others), first);
  two_bit_piece(_mm512_unpackhi_epi8(a, b), _mm512_unpackhi_epi8(signs, others), second);
}

// Places of bytes `at`, `at` + `step`, ... of two registers, eight of the first, eight of the second, and so on; `each`
// of them follow each other before the step.
struct alignas(64) Places {
  uint8_t place[64];
};
constexpr Places places_of(int at, int each, int step) {
  Places list{};
  for (int i = 0; i < 64; ++i) {
    const int k = i / 16 * 8 + i % 8;
    list.place[i] = static_cast<uint8_t>(i / 8 % 2 * 64 + at + k / each * step + k % each);
  }
  return list;
}
template <const Places& places>
STRATA_SIMD __m512i gathered(__m512i first, __m512i second) {
  return _mm512_permutex2var_epi8(first, _mm512_load_si512(places.place), second);
}
constexpr Places kLowBytes = places_of(0, 1, 2), kHighBytes = places_of(1, 1, 2), kLowFours = places_of(0, 4, 8),
                 kInOrder = places_of(0, 1, 1);
STRATA_SIMD __m512i gathered32(const uint8_t* first, const uint8_t* second) {
  return gathered<kInOrder>(_mm512_castsi256_si512(load256(first)), _mm512_castsi256_si512(load256(second)));
}

// unpack_two(p, q, grid, first, second): the registers of two pieces.
template <DType type>
struct Lattice;

template <int step>
struct Transposed {
  static constexpr bool kTransposed = true;
  static constexpr int kStep = step;
};

template <>
struct Lattice<DType::IQ2_XXS> : Transposed<1> {
  STRATA_SIMD void unpack_two(const uint8_t* p, const uint8_t* q, const void* grid, __m512i (&first)[4],
                              __m512i (&second)[4]) {
    const __m512i a = _mm512_loadu_si512(p + 2), b = _mm512_loadu_si512(q + 2);  // four indices and a word, eight times
    const __m512i index = gathered<kLowFours>(a, b);
    const __m512i signs = gathered<kLowFours>(windows<32, 7>(a), windows<32, 7>(b));
    two_bit_pieces<8>(index, {_mm512_movepi8_mask(index), 0, 0}, grid, bits_by<kSevenAndParity>(signs), first, second);
  }
};

template <>
struct Lattice<DType::IQ2_XS> : Transposed<1> {
  STRATA_SIMD void unpack_two(const uint8_t* p, const uint8_t* q, const void* grid, __m512i (&first)[4],
                              __m512i (&second)[4]) {
    const __m512i a = _mm512_loadu_si512(p + 2), b = _mm512_loadu_si512(q + 2);
    const __m512i index = gathered<kLowBytes>(a, b), rest = gathered<kHighBytes>(a, b);
    const HighBits high = {_mm512_movepi8_mask(index), _mm512_test_epi8_mask(rest, _mm512_set1_epi8(1)), 0};
    two_bit_pieces<9>(index, high, grid, bits_by<kUpperAndParity>(rest), first, second);
  }
};

template <>
struct Lattice<DType::IQ2_S> : Transposed<1> {
  STRATA_SIMD void unpack_two(const uint8_t* p, const uint8_t* q, const void* grid, __m512i (&first)[4],
                              __m512i (&second)[4]) {
    const __m512i index = gathered32(p + 2, q + 2);
    const auto eight = [](const uint8_t* at) __attribute__((always_inline)) {
      return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(at));
    };
    // Of each eight indices two bytes, with two bits an index.
    const __m512i pairs = _mm512_cvtepu16_epi64(_mm_unpacklo_epi16(eight(p + 66), eight(q + 66)));
    const __m512i two = windows<0, 2>(pairs);
    const HighBits high = {_mm512_movepi8_mask(index), _mm512_test_epi8_mask(two, _mm512_set1_epi8(1)),
                           _mm512_test_epi8_mask(two, _mm512_set1_epi8(2))};
    two_bit_pieces<10>(index, high, grid, gathered32(p + 34, q + 34), first, second);
  }
};

template <>
struct Lattice<DType::IQ3_XXS> : Transposed<1> {
  STRATA_SIMD void unpack(const uint8_t* p, const void* grid, __m512i (&z)[4]) {
    const __m512i seven = windows<0, 7>(_mm512_cvtepu32_epi64(load256(p + 66)));
    three_bit_fields<8>(_mm512_loadu_si512(p + 2), 0, grid, windows<0, 4>(bits_by<kSevenAndParity>(seven)), z);
    const __m512i table = raised_table<kSignedThreeBits, 128>();
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) z[j] = _mm512_shuffle_epi8(table, z[j]);
  }
  STRATA_SIMD void unpack_two(const uint8_t* p, const uint8_t* q, const void* grid, __m512i (&first)[4],
                              __m512i (&second)[4]) {
    unpack(p, grid, first);
    unpack(q, grid, second);
  }
};

// Levels are odd: twice what the fields hold, less 15.
template <>
struct Lattice<DType::IQ3_S> : Transposed<2> {
  STRATA_SIMD void unpack(const uint8_t* p, const void* grid, __m512i (&z)[4]) {
    const __m512i signs = windows<0, 4>(_mm512_cvtepu32_epi64(load256(p + 74)));
    three_bit_fields<9>(_mm512_loadu_si512(p + 2), qword_at(p + 66), grid, signs, z);
  }
  STRATA_SIMD void unpack_two(const uint8_t* p, const uint8_t* q, const void* grid, __m512i (&first)[4],
                              __m512i (&second)[4]) {
    unpack(p, grid, first);
    unpack(q, grid, second);
  }
};

}  // namespace
}  // namespace strata
