// Unpackers of 256 weights into whole levels. Included by the kernels of each instruction set.
//
// Every format has kBlock elements and kBytes of a block, and of a piece of 256 elements at p: scales(p) (of its eight
// blocks, exact), where it has them minima(p), and where halves of blocks have whole scales halves(p) in the order of
// start_slot. Levels come in the form that each instruction set multiplies: block<b>(p, grid) has the 32 signed levels
// of block b for AVX2; levels<j>(p, grid) has blocks j and j + 4, unsigned (int8_traits), for AVX-512, of transposed
// types elements 4 m + j (Int8Piece).
#pragma once

#include "ops/weight_dot/formats.h"
#include "ops/weight_dot/int8_types.h"

namespace strata {
namespace {

#if defined(__AVX512F__)
// Low nibbles of sixteen bytes each, then their high ones: two blocks of 32.
STRATA_SIMD __m512i nibble_blocks(const uint8_t* a, const uint8_t* b) {
  const __m512i both = _mm512_mask_broadcast_i32x4(_mm512_broadcast_i32x4(load128(a)), 0xff00, load128(b));
  return _mm512_and_si512(_mm512_mask_srli_epi32(both, 0xf0f0, both, 4), _mm512_set1_epi8(15));
}
STRATA_SIMD __m512i halves512(const uint8_t* low, const uint8_t* high) {
  return _mm512_inserti64x4(_mm512_castsi256_si512(load256(low)), load256(high), 1);
}
// Levels of a table plus an offset, in every sixteen bytes.
template <const Levels16& levels, int offset>
STRATA_SIMD __m512i raised_table() {
  return _mm512_broadcast_i32x4(_mm_add_epi8(load128(levels), _mm_set1_epi8(static_cast<char>(offset))));
}
STRATA_SIMD __m512 both8(__m256 low, __m256 high) { return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1); }
STRATA_SIMD __m512i raised(__m512i levels) { return _mm512_xor_si512(levels, _mm512_set1_epi8(-128)); }
// Bits of bytes that stay in their byte, after a mask.
template <int by>
STRATA_SIMD __m512i moved_left512(__m512i bytes) {
  return by >= 0 ? _mm512_slli_epi16(bytes, by >= 0 ? by : 0) : _mm512_srli_epi16(bytes, by >= 0 ? 0 : -by);
}
#else
STRATA_SIMD __m256i nibble_block(const uint8_t* p) {
  const __m128i bytes = load128(p);
  return _mm256_and_si256(_mm256_set_m128i(_mm_srli_epi16(bytes, 4), bytes), _mm256_set1_epi8(15));
}
template <const Levels16& levels>
STRATA_SIMD __m256i named_block(const uint8_t* p) {
  return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(load128(levels)), nibble_block(p));
}
#endif

template <int stride>
STRATA_SIMD __m256 f16_each(const uint8_t* p) {
  const auto at = [p](int i) __attribute__((always_inline)) { return static_cast<int16_t>(word_at(p + stride * i)); };
  return _mm256_cvtph_ps(_mm_setr_epi16(at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7)));
}

STRATA_SIMD __m256i fours8() { return _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28); }

template <DType type>
struct Levels;

template <>
struct Levels<DType::Q8_0> {
  static constexpr int kBlock = 32, kBytes = 34;
#if defined(__AVX512F__)
  template <int j>
  STRATA_SIMD __m512i levels(const uint8_t* p, const void*) {
    return raised(halves512(p + kBytes * j + 2, p + kBytes * (j + 4) + 2));
  }
#else
  template <int b>
  STRATA_SIMD __m256i block(const uint8_t* p, const void*) {
    return load256(p + kBytes * b + 2);
  }
#endif
  STRATA_SIMD __m256 scales(const uint8_t* p) { return f16_each<kBytes>(p); }
};

template <>
struct Levels<DType::Q4_0> {
  static constexpr int kBlock = 32, kBytes = 18;
#if defined(__AVX512F__)
  template <int j>
  STRATA_SIMD __m512i levels(const uint8_t* p, const void*) {
    return nibble_blocks(p + kBytes * j + 2, p + kBytes * (j + 4) + 2);
  }
#else
  template <int b>
  STRATA_SIMD __m256i block(const uint8_t* p, const void*) {
    return _mm256_sub_epi8(nibble_block(p + kBytes * b + 2), _mm256_set1_epi8(8));
  }
#endif
  STRATA_SIMD __m256 scales(const uint8_t* p) { return f16_each<kBytes>(p); }
};

template <>
struct Levels<DType::IQ4_NL> {
  static constexpr int kBlock = 32, kBytes = 18;
#if defined(__AVX512F__)
  template <int j>
  STRATA_SIMD __m512i levels(const uint8_t* p, const void* grid) {
    return _mm512_shuffle_epi8(raised_table<kIq4, 128>(), Levels<DType::Q4_0>::levels<j>(p, grid));
  }
#else
  template <int b>
  STRATA_SIMD __m256i block(const uint8_t* p, const void*) {
    return named_block<kIq4>(p + kBytes * b + 2);
  }
#endif
  STRATA_SIMD __m256 scales(const uint8_t* p) { return f16_each<kBytes>(p); }
};

template <>
struct Levels<DType::MXFP4> {
  static constexpr int kBlock = 32, kBytes = 17;
#if defined(__AVX512F__)
  template <int j>
  STRATA_SIMD __m512i levels(const uint8_t* p, const void*) {
    return _mm512_shuffle_epi8(raised_table<kE2m1, 12>(), nibble_blocks(p + kBytes * j + 1, p + kBytes * (j + 4) + 1));
  }
#else
  template <int b>
  STRATA_SIMD __m256i block(const uint8_t* p, const void*) {
    return named_block<kE2m1>(p + kBytes * b + 1);
  }
#endif
  STRATA_SIMD __m256 scales(const uint8_t* p) {  // 2^(e - 128); the two smallest are subnormal
    const auto at = [p](int i) __attribute__((always_inline)) { return static_cast<int>(p[kBytes * i]); };
    const __m256i e = _mm256_setr_epi32(at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7));
    const __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(e, _mm256_set1_epi32(1)), 23);
    const __m256i small = _mm256_sllv_epi32(_mm256_set1_epi32(0x00200000), e);
    return _mm256_castsi256_ps(_mm256_blendv_epi8(normal, small, _mm256_cmpgt_epi32(_mm256_set1_epi32(2), e)));
  }
};

template <>
struct Levels<DType::Q2_0> {
  static constexpr int kBlock = 64, kBytes = 18;
#if defined(__AVX512F__)
  template <int j>
  STRATA_SIMD __m512i levels(const uint8_t* p, const void*) {
    const __m512i first = _mm512_inserti32x4(_mm512_castsi128_si512(load128(p + 2)), load128(p + kBytes + 2), 1);
    const __m512i three = _mm512_inserti32x4(first, load128(p + 2 * kBytes + 2), 2);
    const __m512i bytes = _mm512_inserti32x4(three, load128(p + 3 * kBytes + 2), 3);
    return _mm512_and_si512(_mm512_srli_epi16(bytes, 2 * j), _mm512_set1_epi8(3));
  }
#else
  template <int b>
  STRATA_SIMD __m256i block(const uint8_t* p, const void*) {
    const uint8_t* at = p + kBytes * (b / 2) + 2 + b % 2 * 8;
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(at));
    const __m256i order = _mm256_setr_epi8(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 6, 6,
                                           6, 6, 7, 7, 7, 7);
    const __m256i four = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(bytes), order);
    const __m256i even = _mm256_or_si256(bits_of(four, 3), bits_of(_mm256_srli_epi32(four, 4), 0x30000));
    const __m256i odd =
        _mm256_or_si256(bits_of(_mm256_srli_epi32(four, 2), 0x300), bits_of(_mm256_srli_epi32(four, 6), 0x3000000));
    return _mm256_sub_epi8(_mm256_or_si256(even, odd), _mm256_set1_epi8(1));
  }
#endif
  STRATA_SIMD __m256 scales(const uint8_t* p) {
    const auto at = [p](int i) __attribute__((always_inline)) { return static_cast<int16_t>(word_at(p + kBytes * i)); };
    return _mm256_cvtph_ps(_mm_setr_epi16(at(0), at(0), at(1), at(1), at(2), at(2), at(3), at(3)));
  }
};

STRATA_SIMD __m256 scaled8(uint32_t low, uint32_t high, float factor) {
  const __m128i bytes = _mm_set_epi32(0, 0, static_cast<int>(high), static_cast<int>(low));
  return _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes)), _mm256_set1_ps(factor));
}
// Six bits each of scale and minimum in twelve bytes (Q4_K, Q5_K), and the nibbles of four times 64 elements.
struct SixBitScales {
  STRATA_SIMD __m256 scales(const uint8_t* p) {
    const uint32_t a = dword_at(p + 4), e = dword_at(p + 12);
    return scaled8(a & 0x3f3f3f3fu, (e & 0x0f0f0f0fu) | (a >> 2 & 0x30303030u), f16_at(p));
  }
  STRATA_SIMD __m256 minima(const uint8_t* p) {
    const uint32_t c = dword_at(p + 8), e = dword_at(p + 12);
    return scaled8(c & 0x3f3f3f3fu, (e >> 4 & 0x0f0f0f0fu) | (c >> 2 & 0x30303030u), f16_at(p + 2));
  }
#if defined(__AVX512F__)
  template <int j>
  STRATA_SIMD __m512i nibbles(const uint8_t* qs) {
    const __m512i bytes = halves512(qs + 32 * (j / 2), qs + 32 * (j / 2) + 64);
    return _mm512_and_si512(j % 2 != 0 ? _mm512_srli_epi16(bytes, 4) : bytes, _mm512_set1_epi8(15));
  }
#else
  template <int b>
  STRATA_SIMD __m256i nibbles(const uint8_t* qs) {
    const __m256i bytes = load256(qs + 32 * (b / 2));
    return _mm256_and_si256(b % 2 != 0 ? _mm256_srli_epi16(bytes, 4) : bytes, _mm256_set1_epi8(15));
  }
#endif
};

template <>
struct Levels<DType::Q4_K> : SixBitScales {
  static constexpr int kBlock = 256, kBytes = 144;
#if defined(__AVX512F__)
  template <int j>
  STRATA_SIMD __m512i levels(const uint8_t* p, const void*) {
    return nibbles<j>(p + 16);
  }
#else
  template <int b>
  STRATA_SIMD __m256i block(const uint8_t* p, const void*) {
    return nibbles<b>(p + 16);
  }
#endif
};

template <>
struct Levels<DType::Q5_K> : SixBitScales {
  static constexpr int kBlock = 256, kBytes = 176;
#if defined(__AVX512F__)
  template <int j>
  STRATA_SIMD __m512i levels(const uint8_t* p, const void*) {
    const __m512i both = _mm512_broadcast_i64x4(load256(p + 16));
    const __m512i high = _mm512_mask_srli_epi16(both, 0xffff0000u, both, 4);  // bits j + 4 beside bits j
    const __m512i fifth = _mm512_and_si512(moved_left512<4 - j>(high), _mm512_set1_epi8(16));
    return _mm512_or_si512(nibbles<j>(p + 48), fifth);
  }
#else
  template <int b>
  STRATA_SIMD __m256i block(const uint8_t* p, const void*) {
    const __m256i fifth = _mm256_and_si256(moved_left<4 - b>(load256(p + 16)), _mm256_set1_epi8(16));
    return _mm256_or_si256(nibbles<b>(p + 48), fifth);
  }
#endif
};

template <>
struct Levels<DType::Q6_K> {
  static constexpr int kBlock = 256, kBytes = 210;
#if defined(__AVX512F__)
  template <int j>
  STRATA_SIMD __m512i levels(const uint8_t* p, const void*) {
    const __m512i ql = halves512(p + 32 * (j % 2), p + 64 + 32 * (j % 2));
    const __m512i high = _mm512_loadu_si512(p + 128);
    const __m512i low = _mm512_and_si512(j >= 2 ? _mm512_srli_epi16(ql, 4) : ql, _mm512_set1_epi8(15));
    return _mm512_or_si512(low, _mm512_and_si512(moved_left512<4 - 2 * j>(high), _mm512_set1_epi8(48)));
  }
#else
  template <int b>
  STRATA_SIMD __m256i block(const uint8_t* p, const void*) {
    constexpr int n = b / 4, j = b % 4;
    const __m256i ql = load256(p + 64 * n + 32 * (j % 2)), high = load256(p + 128 + 32 * n);
    const __m256i low = _mm256_and_si256(j >= 2 ? _mm256_srli_epi16(ql, 4) : ql, _mm256_set1_epi8(15));
    const __m256i q = _mm256_or_si256(low, _mm256_and_si256(moved_left<4 - 2 * j>(high), _mm256_set1_epi8(48)));
    return _mm256_sub_epi8(q, _mm256_set1_epi8(32));
  }
#endif
  STRATA_SIMD __m256 scales(const uint8_t* p) { return _mm256_set1_ps(f16_at(p + 208)); }
  STRATA_SIMD __m128i halves(const uint8_t* p) {
    const __m128i order = _mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15);
    return _mm_shuffle_epi8(load128(p + 192), order);
  }
};

template <>
struct Levels<DType::IQ4_XS> {
  static constexpr int kBlock = 256, kBytes = 136;
#if defined(__AVX512F__)
  template <int j>
  STRATA_SIMD __m512i levels(const uint8_t* p, const void*) {
    return _mm512_shuffle_epi8(raised_table<kIq4, 128>(), nibble_blocks(p + 8 + 16 * j, p + 8 + 16 * (j + 4)));
  }
#else
  template <int b>
  STRATA_SIMD __m256i block(const uint8_t* p, const void*) {
    return named_block<kIq4>(p + 8 + 16 * b);
  }
#endif
  STRATA_SIMD __m256 scales(const uint8_t* p) {
    const __m256i low = fields_of(dword_at(p + 4), fours8(), 15);
    const __m256i high = fields_of(word_at(p + 2), _mm256_srli_epi32(fours8(), 1), 3);
    const __m256i both = _mm256_or_si256(low, _mm256_slli_epi32(high, 4));
    const __m256 whole = _mm256_cvtepi32_ps(_mm256_sub_epi32(both, _mm256_set1_epi32(32)));
    return _mm256_mul_ps(whole, _mm256_set1_ps(f16_at(p)));
  }
};

// 2 n + 1 of sixteen nibbles, in the order of start_slot.
STRATA_SIMD __m128i odd_halves(const uint8_t* nibbles) {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(nibbles));
  const __m128i low = _mm_and_si128(bytes, _mm_set1_epi8(15));
  const __m128i high = _mm_and_si128(_mm_srli_epi16(bytes, 4), _mm_set1_epi8(15));
  const __m128i n = _mm_unpacklo_epi32(low, high);
  return _mm_add_epi8(_mm_add_epi8(n, n), _mm_set1_epi8(1));
}

template <>
struct Levels<DType::IQ2_XXS> {
  static constexpr int kBlock = 256, kBytes = 66;
  STRATA_SIMD __m256i row(const uint8_t* i, const void* grid) {
    return rows8(static_cast<const uint64_t*>(grid), i[0], i[1], i[2], i[3]);
  }
#if !defined(__AVX512F__)
  template <int b>
  STRATA_SIMD __m256i block(const uint8_t* p, const void* grid) {
    const uint8_t* i = p + 2 + 8 * b;
    return with_signs(row(i, grid), signs_of_word(dword_at(i + 4)));
  }
#endif
  STRATA_SIMD __m256 scales(const uint8_t* p) {
    const __m256 low = _mm256_castsi256_ps(load256(p + 2)), high = _mm256_castsi256_ps(load256(p + 34));
    const __m256i odd = _mm256_castps_si256(_mm256_shuffle_ps(low, high, 0xdd));
    return half_steps(f16_at(p), _mm256_srli_epi32(_mm256_permute4x64_epi64(odd, 0xd8), 28), 0.25f);
  }
};

template <>
struct Levels<DType::IQ2_XS> {
  static constexpr int kBlock = 256, kBytes = 74;
  STRATA_SIMD __m256i row(const uint8_t* p, const void* grid, int b) {
    const uint64_t e = qword_at(p + 2 + 8 * b);
    return rows8(static_cast<const uint64_t*>(grid), e & 511, e >> 16 & 511, e >> 32 & 511, e >> 48 & 511);
  }
  STRATA_SIMD uint32_t signs(const uint8_t* p, int b) {
    const uint64_t e = qword_at(p + 2 + 8 * b) >> 9;  // seven bits in each sixteen
    const uint64_t seven = (e & 0x7f) | (e >> 8 & 0x7f00) | (e >> 16 & 0x7f0000) | (e >> 24 & 0x7f000000);
    return static_cast<uint32_t>(even_signs(seven));
  }
#if !defined(__AVX512F__)
  template <int b>
  STRATA_SIMD __m256i block(const uint8_t* p, const void* grid) {
    return with_signs(row(p, grid, b), signs(p, b));
  }
#endif
  STRATA_SIMD __m256 scales(const uint8_t* p) { return _mm256_set1_ps(f16_at(p) * 0.125f); }
  STRATA_SIMD __m128i halves(const uint8_t* p) { return odd_halves(p + 66); }
};

template <>
struct Levels<DType::IQ2_S> {
  static constexpr int kBlock = 256, kBytes = 82;
  STRATA_SIMD __m256i row(const uint8_t* p, const void* grid, int b) {
    const uint8_t* i = p + 2 + 4 * b;
    const uint32_t high = p[66 + b];
    return rows8(static_cast<const uint64_t*>(grid), i[0] | (high << 8 & 768), i[1] | (high << 6 & 768),
                 i[2] | (high << 4 & 768), i[3] | (high << 2 & 768));
  }
#if !defined(__AVX512F__)
  template <int b>
  STRATA_SIMD __m256i block(const uint8_t* p, const void* grid) {
    return with_signs(row(p, grid, b), dword_at(p + 34 + 4 * b));
  }
#endif
  STRATA_SIMD __m256 scales(const uint8_t* p) { return _mm256_set1_ps(f16_at(p) * 0.125f); }
  STRATA_SIMD __m128i halves(const uint8_t* p) { return odd_halves(p + 74); }
};

template <>
struct Levels<DType::IQ3_XXS> {
  static constexpr int kBlock = 256, kBytes = 98;
#if !defined(__AVX512F__)
  template <int b>
  STRATA_SIMD __m256i block(const uint8_t* p, const void* grid) {
    return with_signs(rows4(grid, p + 2 + 8 * b), signs_of_word(dword_at(p + 66 + 4 * b)));
  }
#endif
  STRATA_SIMD __m256 scales(const uint8_t* p) {
    return half_steps(f16_at(p), _mm256_srli_epi32(load256(p + 66), 28), 0.5f);
  }
};

template <>
struct Levels<DType::IQ3_S> {
  static constexpr int kBlock = 256, kBytes = 110;
  STRATA_SIMD __m256i row(const uint8_t* p, const void* grid, int b) {
    const uint8_t* i = p + 2 + 8 * b;
    const uint32_t high = static_cast<uint32_t>(p[66 + b]) << 8;
    uint16_t index[8];
    for (int k = 0; k < 8; ++k) index[k] = static_cast<uint16_t>(i[k] | (high >> k & 256));
    return rows4(grid, index);
  }
#if !defined(__AVX512F__)
  template <int b>
  STRATA_SIMD __m256i block(const uint8_t* p, const void* grid) {
    return with_signs(row(p, grid, b), dword_at(p + 74 + 4 * b));
  }
#endif
  STRATA_SIMD __m256 scales(const uint8_t* p) {
    const __m256i n = fields_of(dword_at(p + 106), fours8(), 15);
    const __m256i odd = _mm256_add_epi32(_mm256_add_epi32(n, n), _mm256_set1_epi32(1));
    return _mm256_mul_ps(_mm256_set1_ps(f16_at(p)), _mm256_cvtepi32_ps(odd));
  }
};

// A type's properties in the kernels, where they are constants.
template <DType type>
struct Is {
  static constexpr bool kHalves = type == DType::Q6_K || type == DType::IQ2_XS || type == DType::IQ2_S;
  static constexpr bool kMinima = type == DType::Q4_K || type == DType::Q5_K;
  static constexpr bool kLattice = type == DType::IQ2_XXS || type == DType::IQ2_XS || type == DType::IQ2_S ||
                                   type == DType::IQ3_XXS || type == DType::IQ3_S;
};

template <DType type>
constexpr int64_t kPieceBytes = kPiece / Levels<type>::kBlock* Levels<type>::kBytes;

// The last piece of a row, zeros behind its end.
template <DType type>
STRATA_SIMD const uint8_t* last_piece(const uint8_t* p, int64_t elements, uint8_t* copy) {
  if (elements == kPiece) return p;
  const int64_t bytes = elements / Levels<type>::kBlock * Levels<type>::kBytes;
  __builtin_memset(copy, 0, kPieceBytes<type>);
  __builtin_memcpy(copy, p, static_cast<size_t>(bytes));
  return copy;
}

}  // namespace
}  // namespace strata
