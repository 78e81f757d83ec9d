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

// plane[index] of 64 bytes, indices of `bits` bits. A table is in registers while all of `n` indices pass.
template <int bits, int n>
STRATA_SIMD void look_up(const uint8_t* plane, const __m512i (&index)[n], const HighBits (&high)[n],
                         __m512i (&found)[n]) {
  if constexpr (bits == 7) {
    const __m512i low = _mm512_loadu_si512(plane), above = _mm512_loadu_si512(plane + 64);
#pragma GCC unroll 2
    for (int i = 0; i < n; ++i) found[i] = _mm512_permutex2var_epi8(low, index[i], above);
  } else {
    __m512i above[n];
    look_up<bits - 1>(plane, index, high, found);
    look_up<bits - 1>(plane + (1 << (bits - 1)), index, high, above);
#pragma GCC unroll 2
    for (int i = 0; i < n; ++i) {
      const __mmask64 bit = bits == 8 ? high[i].seventh : (bits == 9 ? high[i].eighth : high[i].ninth);
      found[i] = _mm512_mask_blend_epi8(bit, found[i], above[i]);
    }
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
constexpr uint64_t kUpperNibble = 0x1020408000000000;     // bits 4 to 7, zeros above

// Three-bit levels of two pieces: `a` and `b` have the nibbles of lattice_planes. A negative level is the complement.
// Signs are the low four bits of each byte, of the columns of one row.
template <int bits>
STRATA_SIMD void three_bit_rows(const __m512i (&index)[2], const __mmask64 (&ninth_bit)[2], const void* grid,
                                const __m512i (&signs)[2], __m512i (&a)[2], __m512i (&b)[2]) {
  const auto* plane = static_cast<const uint8_t*>(grid);
  const HighBits high[2] = {{_mm512_movepi8_mask(index[0]), ninth_bit[0], 0},
                            {_mm512_movepi8_mask(index[1]), ninth_bit[1], 0}};
  constexpr uint64_t kTwo = 0x0101010102020202, kNextTwo = 0x0404040408080808;  // a bit in all of a nibble
  look_up<bits>(plane, index, high, a);
  look_up<bits>(plane + (1 << bits), index, high, b);
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    a[i] = _mm512_xor_si512(a[i], bits_by<kTwo>(signs[i]));
    b[i] = _mm512_xor_si512(b[i], bits_by<kNextTwo>(signs[i]));
  }
}

struct alignas(64) Table64 {
  uint8_t byte[64];
};
STRATA_SIMD __m512i named_by(__m512i places, const Table64& table) {  // that are the low six bits
  return _mm512_permutexvar_epi8(places, _mm512_load_si512(table.byte));
}

// The levels of IQ3_XXS raised by 128, by the low four bits of a place.
constexpr Table64 signed_three_bits() {
  constexpr int kMagnitudes[8] = {4, 12, 20, 28, 36, 44, 52, 62};
  Table64 table{};
  for (int i = 0; i < 64; ++i)
    table.byte[i] = static_cast<uint8_t>(128 + (i % 16 < 8 ? -kMagnitudes[7 - i % 8] : kMagnitudes[i % 8]));
  return table;
}
constexpr Table64 kSignedThreeBits = signed_three_bits();

// Two-bit levels raised by 128: the field in bits `field` and above of a place, its sign in bit `sign`.
constexpr Table64 signed_two_bits(int field, int sign) {
  constexpr int kMagnitudes[4] = {8, 25, 43, 0};
  Table64 table{};
  for (int i = 0; i < 64; ++i) {
    const int magnitude = kMagnitudes[i >> field & 3];
    table.byte[i] = static_cast<uint8_t>(128 + ((i >> sign & 1) != 0 ? -magnitude : magnitude));
  }
  return table;
}
constexpr Table64 kSignedTwoBits[4] = {signed_two_bits(0, 5), signed_two_bits(2, 1), signed_two_bits(4, 2),
                                       signed_two_bits(4, 3)};
// Signs of columns 0 to 3 in bits 5, 1, 2 and 3, as those tables want them, and of columns 4 to 7. The last from all of
// eight bits, from seven whose parity is the eighth, or from seven that begin with bit 1.
constexpr uint64_t kFirstSigns = 0x0002040800010000, kLastSigns = 0x0020408000100000,
                   kLastSignsParity = 0x0020407f00100000, kFirstSignsUpper = 0x0004081000020000,
                   kLastSignsUpper = 0x004080fe00200000;

template <int j>
STRATA_SIMD __m512i two_bit_levels(__m512i fields, __m512i signs) {
  constexpr int kMask = j == 0 ? 3 : (j == 1 ? 12 : 48), kSelect = 0xca;  // the mask's bits choose
  const __m512i mask = _mm512_set1_epi8(kMask);
  const __m512i places = j == 3 ? _mm512_srli_epi16(fields, 2) : fields;
  return named_by(_mm512_ternarylogic_epi64(mask, places, signs, kSelect), kSignedTwoBits[j]);
}
STRATA_SIMD void two_bit_piece(__m512i fields, __m512i signs, __m512i (&z)[4]) {
  z[0] = two_bit_levels<0>(fields, signs);
  z[1] = two_bit_levels<1>(fields, signs);
  z[2] = two_bit_levels<2>(fields, signs);
  z[3] = two_bit_levels<3>(fields, signs);
}
// Two pieces whose rows lie side by side: eight of the first, eight of the second, and so on; signs of their first and
// of their last columns.
template <int bits>
STRATA_SIMD void two_bit_pieces(__m512i index, const HighBits& high, const void* grid, __m512i first_signs,
                                __m512i last_signs, __m512i (&first)[4], __m512i (&second)[4]) {
  const auto* plane = static_cast<const uint8_t*>(grid);
  const __m512i one[1] = {index};
  const HighBits bits_of_one[1] = {high};
  __m512i a[1], b[1];
  look_up<bits>(plane, one, bits_of_one, a);
  look_up<bits>(plane + (1 << bits), one, bits_of_one, b);
  two_bit_piece(_mm512_unpacklo_epi8(a[0], b[0]), _mm512_unpacklo_epi8(first_signs, last_signs), first);
  two_bit_piece(_mm512_unpackhi_epi8(a[0], b[0]), _mm512_unpackhi_epi8(first_signs, last_signs), second);
}

// Table64 of bytes `at`, `at` + `step`, ... of two registers, eight of the first, eight of the second, and so on;
// `each` of them follow each other before the step.
constexpr Table64 places_of(int at, int each, int step) {
  Table64 list{};
  for (int i = 0; i < 64; ++i) {
    const int k = i / 16 * 8 + i % 8;
    list.byte[i] = static_cast<uint8_t>(i / 8 % 2 * 64 + at + k / each * step + k % each);
  }
  return list;
}
template <const Table64& places>
STRATA_SIMD __m512i gathered(__m512i first, __m512i second) {
  return _mm512_permutex2var_epi8(first, _mm512_load_si512(places.byte), second);
}
// Not loaded again where it is used again: it crosses a line of the cache.
STRATA_SIMD void loaded_once(__m512i& loaded) { asm("" : "+v"(loaded)); }
// Tables that do not fit the registers: read from the cache each time, not from where they would have been put aside.
STRATA_SIMD void read_anew(const void*& grid) { asm volatile("" : "+r"(grid)); }
constexpr Table64 kLowBytes = places_of(0, 1, 2), kHighBytes = places_of(1, 1, 2), kLowFours = places_of(0, 4, 8),
                  kInOrder = places_of(0, 1, 1);
STRATA_SIMD __m512i gathered32(const uint8_t* first, const uint8_t* second) {
  return gathered<kInOrder>(_mm512_castsi256_si512(load256(first)), _mm512_castsi256_si512(load256(second)));
}

// The f16 at p eight times and that at q, times an exact factor.
STRATA_SIMD __m512 eight_each(const uint8_t* p, const uint8_t* q, float factor = 1) {
  const __m128i words = _mm_insert_epi16(_mm_cvtsi32_si128(word_at(p)), word_at(q), 1);
  const __m512 two = _mm512_castps128_ps512(_mm_mul_ps(_mm_cvtph_ps(words), _mm_set1_ps(factor)));
  return _mm512_permutexvar_ps(_mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1), two);
}
// As half_steps.
STRATA_SIMD __m512 half_steps_of_both(const uint8_t* p, const uint8_t* q, __m512i n, float factor) {
  const __m512 steps = _mm512_add_ps(_mm512_cvtepi32_ps(n), _mm512_set1_ps(0.5f));
  return _mm512_mul_ps(_mm512_mul_ps(eight_each(p, q), steps), _mm512_set1_ps(factor));
}

// unpack_two(p, q, grid, first, second): the registers of two pieces; scales(p, q) and halves(p, q, first, second).
template <DType type>
struct Lattice;

template <int step>
struct Transposed {
  static constexpr bool kTransposed = true;
  static constexpr int kStep = step;
};
// Scales of halves: 2 n + 1 for nibbles that begin at byte `at`.
template <int at>
struct WithHalves : Transposed<1> {
  STRATA_SIMD __m512 scales(const uint8_t* p, const uint8_t* q) { return eight_each(p, q, 0.125f); }
  STRATA_SIMD void halves(const uint8_t* p, const uint8_t* q, __m512i& first, __m512i& second) {
    const __m128i nibbles =
        _mm_set_epi64x(static_cast<int64_t>(qword_at(q + at)), static_cast<int64_t>(qword_at(p + at)));
    const __m128i twice = _mm_set1_epi8(30), one = _mm_set1_epi8(1);
    const __m128i even = _mm_or_si128(_mm_and_si128(_mm_add_epi8(nibbles, nibbles), twice), one);
    const __m128i odd = _mm_or_si128(_mm_and_si128(_mm_srli_epi16(nibbles, 3), twice), one);
    first = _mm512_cvtepi8_epi32(_mm_unpacklo_epi8(even, odd));
    second = _mm512_cvtepi8_epi32(_mm_unpackhi_epi8(even, odd));
  }
};

template <>
struct Lattice<DType::IQ2_XXS> : Transposed<1> {
  STRATA_SIMD void unpack_two(const uint8_t* p, const uint8_t* q, const void* grid, __m512i (&first)[4],
                              __m512i (&second)[4]) {
    const __m512i a = _mm512_loadu_si512(p + 2), b = _mm512_loadu_si512(q + 2);  // four indices and a word, eight times
    const __m512i index = gathered<kLowFours>(a, b);
    const __m512i signs = gathered<kLowFours>(windows<32, 7>(a), windows<32, 7>(b));
    two_bit_pieces<8>(index, {_mm512_movepi8_mask(index), 0, 0}, grid, bits_by<kFirstSigns>(signs),
                      bits_by<kLastSignsParity>(signs), first, second);
  }
  STRATA_SIMD __m512 scales(const uint8_t* p, const uint8_t* q) {
    const __m512i odd = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    const __m512i words = _mm512_permutex2var_epi32(_mm512_loadu_si512(p + 2), odd, _mm512_loadu_si512(q + 2));
    return half_steps_of_both(p, q, _mm512_srli_epi32(words, 28), 0.25f);
  }
};

template <>
struct Lattice<DType::IQ2_XS> : WithHalves<66> {
  STRATA_SIMD void unpack_two(const uint8_t* p, const uint8_t* q, const void* grid, __m512i (&first)[4],
                              __m512i (&second)[4]) {
    read_anew(grid);
    __m512i a = _mm512_loadu_si512(p + 2), b = _mm512_loadu_si512(q + 2);
    loaded_once(a);
    loaded_once(b);
    const __m512i index = gathered<kLowBytes>(a, b), rest = gathered<kHighBytes>(a, b);
    const HighBits high = {_mm512_movepi8_mask(index), _mm512_test_epi8_mask(rest, _mm512_set1_epi8(1)), 0};
    two_bit_pieces<9>(index, high, grid, bits_by<kFirstSignsUpper>(rest), bits_by<kLastSignsUpper>(rest), first,
                      second);
  }
};

template <>
struct Lattice<DType::IQ2_S> : WithHalves<74> {
  STRATA_SIMD void unpack_two(const uint8_t* p, const uint8_t* q, const void* grid, __m512i (&first)[4],
                              __m512i (&second)[4]) {
    read_anew(grid);
    const __m512i index = gathered32(p + 2, q + 2);
    const auto eight = [](const uint8_t* at) __attribute__((always_inline)) {
      return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(at));
    };
    // Of each eight indices two bytes, with two bits an index.
    const __m512i pairs = _mm512_cvtepu16_epi64(_mm_unpacklo_epi16(eight(p + 66), eight(q + 66)));
    const __m512i two = windows<0, 2>(pairs);
    const HighBits high = {_mm512_movepi8_mask(index), _mm512_test_epi8_mask(two, _mm512_set1_epi8(1)),
                           _mm512_test_epi8_mask(two, _mm512_set1_epi8(2))};
    const __m512i signs = gathered32(p + 34, q + 34);
    two_bit_pieces<10>(index, high, grid, bits_by<kFirstSigns>(signs), bits_by<kLastSigns>(signs), first, second);
  }
};

template <>
struct Lattice<DType::IQ3_XXS> : Transposed<1> {
  STRATA_SIMD __m512i signs(const uint8_t* p) {
    const __m512i seven = windows<0, 7>(_mm512_cvtepu32_epi64(load256(p + 66)));
    return windows<0, 4>(bits_by<kSevenAndParity>(seven));
  }
  STRATA_SIMD void levels(__m512i a, __m512i b, __m512i (&z)[4]) {
    z[0] = named_by(a, kSignedThreeBits);
    z[1] = named_by(_mm512_srli_epi16(a, 4), kSignedThreeBits);
    z[2] = named_by(b, kSignedThreeBits);
    z[3] = named_by(_mm512_srli_epi16(b, 4), kSignedThreeBits);
  }
  STRATA_SIMD void unpack_two(const uint8_t* p, const uint8_t* q, const void* grid, __m512i (&first)[4],
                              __m512i (&second)[4]) {
    __m512i a[2], b[2];
    three_bit_rows<8>({_mm512_loadu_si512(p + 2), _mm512_loadu_si512(q + 2)}, {0, 0}, grid, {signs(p), signs(q)}, a, b);
    levels(a[0], b[0], first);
    levels(a[1], b[1], second);
  }
  STRATA_SIMD __m512 scales(const uint8_t* p, const uint8_t* q) {
    return half_steps_of_both(p, q, _mm512_srli_epi32(halves512(p + 66, q + 66), 28), 0.5f);
  }
};

// Levels are odd: twice what the fields hold, less 15.
template <>
struct Lattice<DType::IQ3_S> : Transposed<2> {
  STRATA_SIMD __m512i signs(const uint8_t* p) { return windows<0, 4>(_mm512_cvtepu32_epi64(load256(p + 74))); }
  STRATA_SIMD void levels(__m512i a, __m512i b, __m512i (&z)[4]) {
    const __m512i low = _mm512_set1_epi8(15);
    z[0] = _mm512_and_si512(a, low);
    z[1] = bits_by<kUpperNibble>(a);
    z[2] = _mm512_and_si512(b, low);
    z[3] = bits_by<kUpperNibble>(b);
  }
  STRATA_SIMD void unpack_two(const uint8_t* p, const uint8_t* q, const void* grid, __m512i (&first)[4],
                              __m512i (&second)[4]) {
    __m512i a[2], b[2];
    three_bit_rows<9>({_mm512_loadu_si512(p + 2), _mm512_loadu_si512(q + 2)}, {qword_at(p + 66), qword_at(q + 66)},
                      grid, {signs(p), signs(q)}, a, b);
    levels(a[0], b[0], first);
    levels(a[1], b[1], second);
  }
  STRATA_SIMD __m512 scales(const uint8_t* p, const uint8_t* q) {
    const __m512i word = _mm512_set1_epi32(static_cast<int>(dword_at(p + 106)));
    const __m512i both = _mm512_mask_set1_epi32(word, 0xff00, static_cast<int>(dword_at(q + 106)));
    const __m512i shifts = _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8, 12, 16, 20, 24, 28);
    const __m512i n = _mm512_and_si512(_mm512_srlv_epi32(both, shifts), _mm512_set1_epi32(15));
    const __m512i odd = _mm512_add_epi32(_mm512_add_epi32(n, n), _mm512_set1_epi32(1));
    return _mm512_mul_ps(eight_each(p, q), _mm512_cvtepi32_ps(odd));
  }
};

}  // namespace
}  // namespace strata
