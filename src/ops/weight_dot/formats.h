// Decoders of blocks into registers: 32 weights at a time as two F32x16, the bits of gguf/quant.h. Included by
// kernel.h.
//
// Every format has kElements and kBytes of a block, a Head of what its groups share, head(block, Head&), and
// group<s>(block, head, grid, w0, w1) for elements 32 s .. 32 s + 31.
#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "base/simd.h"

namespace strata {
namespace {

STRATA_SIMD uint16_t word_at(const uint8_t* p) {
  uint16_t value;
  __builtin_memcpy(&value, p, sizeof value);
  return value;
}
STRATA_SIMD uint32_t dword_at(const uint8_t* p) {
  uint32_t value;
  __builtin_memcpy(&value, p, sizeof value);
  return value;
}
STRATA_SIMD uint64_t qword_at(const uint8_t* p) {
  uint64_t value;
  __builtin_memcpy(&value, p, sizeof value);
  return value;
}
STRATA_SIMD float f16_at(const uint8_t* p) { return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(word_at(p)))); }
STRATA_SIMD __m128i load128(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
STRATA_SIMD __m256i load256(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }

// Sixteen signed bytes as f32.
STRATA_SIMD F32x16 levels16(__m128i bytes) {
#if defined(__AVX512F__)
  return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes))};
#else
  return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)),
          _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8)))};
#endif
}
STRATA_SIMD void levels32(__m256i bytes, F32x16& w0, F32x16& w1) {
  w0 = levels16(_mm256_castsi256_si128(bytes));
  w1 = levels16(_mm256_extracti128_si256(bytes, 1));
}
STRATA_SIMD void scaled32(__m256i bytes, F32x16 s0, F32x16 s1, F32x16& w0, F32x16& w1) {
  levels32(bytes, w0, w1);
  w0 = w0 * s0;
  w1 = w1 * s1;
}

// Sixteen values that nibbles name: low or high ones of sixteen bytes. Scaling the table is scaling what is named.
struct Table16 {
#if defined(__AVX512F__)
  __m512 values;
#else
  __m128i levels;
  F32x16 scale, shift;
#endif
};
using Levels16 = int8_t[16];
constexpr Levels16 kPlain = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
constexpr Levels16 kCentred = {-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7};
constexpr Levels16 kIq4 = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
constexpr Levels16 kE2m1 = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
constexpr Levels16 kPairs = {-1, 0, 1, 2, -1, 0, 1, 2, -1, 0, 1, 2, -1, 0, 1, 2};

// level · scale - min, one rounding where level · scale is exact.
template <const Levels16& levels>
STRATA_SIMD Table16 table_of(F32x16 scale, F32x16 minus) {
#if defined(__AVX512F__)
  return {_mm512_fmsub_ps(levels16(load128(levels)).v, scale.v, minus.v)};
#else
  return {load128(levels), scale, zero16() - minus};
#endif
}
template <const Levels16& levels>
STRATA_SIMD Table16 table_of(F32x16 scale) {
#if defined(__AVX512F__)
  return {_mm512_mul_ps(levels16(load128(levels)).v, scale.v)};
#else
  return {load128(levels), scale, zero16()};
#endif
}
// Elements named by the low nibbles of sixteen bytes, and by the high ones.
struct Nibbles {
#if defined(__AVX512F__)
  __m512i words;
#else
  __m128i bytes;
#endif
};
STRATA_SIMD Nibbles nibbles_at(const uint8_t* p) {
#if defined(__AVX512F__)
  return {_mm512_cvtepu8_epi32(load128(p))};
#else
  return {load128(p)};
#endif
}
template <int high, bool shifted = false>
STRATA_SIMD F32x16 named(Nibbles n, const Table16& table) {
#if defined(__AVX512F__)
  // The permutation reads the four low bits of an index only.
  return {_mm512_permutexvar_ps(high != 0 ? _mm512_srli_epi32(n.words, 4) : n.words, table.values)};
#else
  const __m128i bytes = high != 0 ? _mm_srli_epi16(n.bytes, 4) : n.bytes;
  const F32x16 value = levels16(_mm_shuffle_epi8(table.levels, _mm_and_si128(bytes, _mm_set1_epi8(15))));
  return shifted ? fma16(value, table.scale, table.shift) : value * table.scale;
#endif
}

template <int kElementsOf, int kBytesOf>
struct Blocks {
  static constexpr int kElements = kElementsOf, kBytes = kBytesOf;
};
struct NoHead {};

template <DType type>
struct Format;

template <>
struct Format<DType::F32> : Blocks<32, 128> {
  using Head = NoHead;
  STRATA_SIMD void head(const uint8_t*, Head&) {}
  template <int s>
  STRATA_SIMD void group(const uint8_t* b, const Head&, const void*, F32x16& w0, F32x16& w1) {
    w0 = load16(reinterpret_cast<const float*>(b));
    w1 = load16(reinterpret_cast<const float*>(b) + 16);
  }
};
template <>
struct Format<DType::F16> : Blocks<32, 64> {
  using Head = NoHead;
  STRATA_SIMD void head(const uint8_t*, Head&) {}
  template <int s>
  STRATA_SIMD void group(const uint8_t* b, const Head&, const void*, F32x16& w0, F32x16& w1) {
    w0 = load16_f16(reinterpret_cast<const uint16_t*>(b));
    w1 = load16_f16(reinterpret_cast<const uint16_t*>(b) + 16);
  }
};
template <>
struct Format<DType::BF16> : Blocks<32, 64> {
  using Head = NoHead;
  STRATA_SIMD void head(const uint8_t*, Head&) {}
  template <int s>
  STRATA_SIMD void group(const uint8_t* b, const Head&, const void*, F32x16& w0, F32x16& w1) {
    w0 = load16_bf16(reinterpret_cast<const uint16_t*>(b));
    w1 = load16_bf16(reinterpret_cast<const uint16_t*>(b) + 16);
  }
};

template <>
struct Format<DType::Q8_0> : Blocks<32, 34> {
  using Head = NoHead;
  STRATA_SIMD void head(const uint8_t*, Head&) {}
  template <int s>
  STRATA_SIMD void group(const uint8_t* b, const Head&, const void*, F32x16& w0, F32x16& w1) {
    const F32x16 scale = broadcast16_f16(word_at(b));
    w0 = levels16(load128(b + 2)) * scale;
    w1 = levels16(load128(b + 18)) * scale;
  }
};

// A scale and sixteen bytes of nibbles.
template <const Levels16& levels>
struct NibbleBlocks : Blocks<32, 18> {
  using Head = NoHead;
  STRATA_SIMD void head(const uint8_t*, Head&) {}
  template <int s>
  STRATA_SIMD void group(const uint8_t* b, const Head&, const void*, F32x16& w0, F32x16& w1) {
    const Table16 table = table_of<levels>(broadcast16_f16(word_at(b)));
    const Nibbles n = nibbles_at(b + 2);
    w0 = named<0>(n, table);
    w1 = named<1>(n, table);
  }
};
template <>
struct Format<DType::Q4_0> : NibbleBlocks<kCentred> {};
template <>
struct Format<DType::IQ4_NL> : NibbleBlocks<kIq4> {};

template <>
struct Format<DType::MXFP4> : Blocks<32, 17> {
  using Head = NoHead;
  STRATA_SIMD void head(const uint8_t*, Head&) {}
  template <int s>
  STRATA_SIMD void group(const uint8_t* b, const Head&, const void*, F32x16& w0, F32x16& w1) {
    const uint32_t e = b[0];  // 2^(e - 128); the two smallest are subnormal
    const uint32_t bits = e < 2 ? 0x00200000u << e : (e - 1) << 23;
    const Table16 table = table_of<kE2m1>(broadcast16(__builtin_bit_cast(float, bits)));
    const Nibbles n = nibbles_at(b + 1);
    w0 = named<0>(n, table);
    w1 = named<1>(n, table);
  }
};

template <>
struct Format<DType::Q2_0> : Blocks<64, 18> {
  struct Head {
    F32x16 scale;
  };
  STRATA_SIMD void head(const uint8_t* b, Head& h) { h.scale = broadcast16_f16(word_at(b)); }
  STRATA_SIMD F32x16 half(const uint8_t* four, const Head& h) {
#if defined(__AVX512F__)
    const __m512i shifts = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i fields = _mm512_srlv_epi32(_mm512_set1_epi32(static_cast<int>(dword_at(four))), shifts);
    return {_mm512_permutexvar_ps(fields, table_of<kPairs>(h.scale).values)};
#else
    const __m256i word = _mm256_set1_epi32(static_cast<int>(dword_at(four))), three = _mm256_set1_epi32(3);
    const __m256i low = _mm256_srlv_epi32(word, _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14));
    const __m256i high = _mm256_srlv_epi32(word, _mm256_setr_epi32(16, 18, 20, 22, 24, 26, 28, 30));
    const __m256i one = _mm256_set1_epi32(1);
    const F32x16 q = {_mm256_cvtepi32_ps(_mm256_sub_epi32(_mm256_and_si256(low, three), one)),
                      _mm256_cvtepi32_ps(_mm256_sub_epi32(_mm256_and_si256(high, three), one))};
    return q * h.scale;
#endif
  }
  template <int s>
  STRATA_SIMD void group(const uint8_t* b, const Head& h, [[maybe_unused]] const void* grid, F32x16& w0, F32x16& w1) {
    w0 = half(b + 2 + 8 * s, h);
    w1 = half(b + 6 + 8 * s, h);
  }
};

// Scales and minima of the eight groups of a block.
struct ScalesMins {
  float scale[8], min[8];
};
STRATA_SIMD void put8(float* out, uint32_t low, uint32_t high, float factor) {
  const __m128i bytes = _mm_set_epi32(0, 0, static_cast<int>(high), static_cast<int>(low));
  _mm256_storeu_ps(out, _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes)), _mm256_set1_ps(factor)));
}
// Six bits each in twelve bytes (Q4_K, Q5_K).
STRATA_SIMD void scales_mins(const uint8_t* b, ScalesMins& head) {
  const uint32_t a = dword_at(b + 4), c = dword_at(b + 8), e = dword_at(b + 12);
  put8(head.scale, a & 0x3f3f3f3fu, (e & 0x0f0f0f0fu) | (a >> 2 & 0x30303030u), f16_at(b));
  put8(head.min, c & 0x3f3f3f3fu, (e >> 4 & 0x0f0f0f0fu) | (c >> 2 & 0x30303030u), f16_at(b + 2));
}

// Bits of bytes that stay in their byte.
template <int by>
STRATA_SIMD __m256i moved_left(__m256i bytes) {
  return by >= 0 ? _mm256_slli_epi16(bytes, by >= 0 ? by : 0) : _mm256_srli_epi16(bytes, by >= 0 ? 0 : -by);
}

template <>
struct Format<DType::Q4_K> : Blocks<256, 144> {
  using Head = ScalesMins;
  STRATA_SIMD void head(const uint8_t* b, Head& h) { scales_mins(b, h); }
  template <int s>
  STRATA_SIMD void group(const uint8_t* b, const Head& h, [[maybe_unused]] const void* grid, F32x16& w0, F32x16& w1) {
    const Table16 table = table_of<kPlain>(broadcast16(h.scale[s]), broadcast16(h.min[s]));
    const uint8_t* qs = b + 16 + 32 * (s / 2);
    w0 = named<s % 2, true>(nibbles_at(qs), table);
    w1 = named<s % 2, true>(nibbles_at(qs + 16), table);
  }
};

template <>
struct Format<DType::Q5_K> : Blocks<256, 176> {
  using Head = ScalesMins;
  STRATA_SIMD void head(const uint8_t* b, Head& h) { scales_mins(b, h); }
  template <int s>
  STRATA_SIMD void group(const uint8_t* b, const Head& h, [[maybe_unused]] const void* grid, F32x16& w0, F32x16& w1) {
    const __m256i qs = load256(b + 48 + 32 * (s / 2)), high = load256(b + 16);
    const __m256i low = _mm256_and_si256(s % 2 != 0 ? _mm256_srli_epi16(qs, 4) : qs, _mm256_set1_epi8(15));
    levels32(_mm256_or_si256(low, _mm256_and_si256(moved_left<4 - s>(high), _mm256_set1_epi8(16))), w0, w1);
    const F32x16 scale = broadcast16(h.scale[s]), minus = broadcast16(-h.min[s]);
    w0 = fma16(w0, scale, minus);
    w1 = fma16(w1, scale, minus);
  }
};

template <>
struct Format<DType::Q6_K> : Blocks<256, 210> {
  struct Head {
    float scale[16];
  };
  STRATA_SIMD void head(const uint8_t* b, Head& h) {
    store16(h.scale, levels16(load128(b + 192)) * broadcast16_f16(word_at(b + 208)));
  }
  template <int s>
  STRATA_SIMD void group(const uint8_t* b, const Head& h, [[maybe_unused]] const void* grid, F32x16& w0, F32x16& w1) {
    constexpr int n = s / 4, j = s % 4;
    const __m256i ql = load256(b + 64 * n + 32 * (j % 2)), qh = load256(b + 128 + 32 * n);
    const __m256i low = _mm256_and_si256(j >= 2 ? _mm256_srli_epi16(ql, 4) : ql, _mm256_set1_epi8(15));
    const __m256i q = _mm256_or_si256(low, _mm256_and_si256(moved_left<4 - 2 * j>(qh), _mm256_set1_epi8(48)));
    scaled32(_mm256_sub_epi8(q, _mm256_set1_epi8(32)), broadcast16(h.scale[2 * s]), broadcast16(h.scale[2 * s + 1]), w0,
             w1);
  }
};

template <>
struct Format<DType::IQ4_XS> : Blocks<256, 136> {
  struct Head {
    float scale[8];
  };
  STRATA_SIMD void head(const uint8_t* b, Head& h) {
    const __m256i shifts = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
    const __m256i pairs = _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14);
    const __m256i low = _mm256_and_si256(
        _mm256_srlv_epi32(_mm256_set1_epi32(static_cast<int>(dword_at(b + 4))), shifts), _mm256_set1_epi32(15));
    const __m256i high =
        _mm256_and_si256(_mm256_srlv_epi32(_mm256_set1_epi32(word_at(b + 2)), pairs), _mm256_set1_epi32(3));
    const __m256i both = _mm256_or_si256(low, _mm256_slli_epi32(high, 4));
    const __m256 scale = _mm256_cvtepi32_ps(_mm256_sub_epi32(both, _mm256_set1_epi32(32)));
    _mm256_storeu_ps(h.scale, _mm256_mul_ps(scale, _mm256_set1_ps(f16_at(b))));
  }
  template <int s>
  STRATA_SIMD void group(const uint8_t* b, const Head& h, [[maybe_unused]] const void* grid, F32x16& w0, F32x16& w1) {
    const Table16 table = table_of<kIq4>(broadcast16(h.scale[s]));
    const Nibbles n = nibbles_at(b + 8 + 16 * s);
    w0 = named<0>(n, table);
    w1 = named<1>(n, table);
  }
};

// Bit i of signs: byte i is negative.
STRATA_SIMD __m256i with_signs(__m256i bytes, uint32_t signs) {
#if defined(__AVX512F__)
  return _mm256_mask_sub_epi8(bytes, signs, _mm256_setzero_si256(), bytes);
#else
  const __m256i spread = _mm256_shuffle_epi8(
      _mm256_set1_epi32(static_cast<int>(signs)),
      _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3));
  const __m256i bits = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201u));
  const __m256i negative = _mm256_cmpeq_epi8(_mm256_and_si256(spread, bits), bits);
  return _mm256_sub_epi8(_mm256_xor_si256(bytes, negative), negative);
#endif
}
// Seven stored signs in each byte; the eighth makes the count of minus signs even.
STRATA_SIMD uint64_t even_signs(uint64_t seven) {
  uint64_t parity = seven ^ seven >> 4;
  parity ^= parity >> 2;
  parity ^= parity >> 1;
  return seven | (parity & 0x0101010101010101u) << 7;
}
STRATA_SIMD uint32_t signs_of_word(uint32_t w) {
  return static_cast<uint32_t>(
      even_signs((w & 0x7fu) | (w << 1 & 0x7f00u) | (w << 2 & 0x7f0000u) | (w << 3 & 0x7f000000u)));
}

// Rows of a grid: eight bytes of four indices, four bytes of eight.
STRATA_SIMD __m256i rows8(const uint64_t* grid, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  const __m128i low = _mm_set_epi64x(static_cast<int64_t>(grid[b]), static_cast<int64_t>(grid[a]));
  const __m128i high = _mm_set_epi64x(static_cast<int64_t>(grid[d]), static_cast<int64_t>(grid[c]));
  return _mm256_set_m128i(high, low);
}
// Keeps the compiler from taking indices out of vector registers one by one: from memory they are one load each.
template <class Values>
STRATA_SIMD void through_memory(Values& values) {
  asm("" : "+m"(values));
}

// Rows of four bytes, each loaded on its own: faster than a gather.
template <class Index>
STRATA_SIMD __m256i rows4(const void* grid, const Index* i) {
  const auto* row = static_cast<const int*>(grid);
  return _mm256_setr_epi32(row[i[0]], row[i[1]], row[i[2]], row[i[3]], row[i[4]], row[i[5]], row[i[6]], row[i[7]]);
}
// even_signs of every byte.
STRATA_SIMD __m256i even_signs(__m256i seven) {
  __m256i parity = _mm256_xor_si256(seven, _mm256_srli_epi16(seven, 4));
  parity = _mm256_xor_si256(parity, _mm256_srli_epi16(parity, 2));
  parity = _mm256_xor_si256(parity, _mm256_srli_epi16(parity, 1));
  return _mm256_or_si256(seven, _mm256_slli_epi16(_mm256_and_si256(parity, _mm256_set1_epi8(1)), 7));
}
STRATA_SIMD __m256i bits_of(__m256i words, int mask) { return _mm256_and_si256(words, _mm256_set1_epi32(mask)); }
// d · (0.5 + n) · factor, in this order.
STRATA_SIMD __m256 half_steps(float d, __m256i n, float factor) {
  const __m256 steps = _mm256_add_ps(_mm256_cvtepi32_ps(n), _mm256_set1_ps(0.5f));
  return _mm256_mul_ps(_mm256_mul_ps(_mm256_set1_ps(d), steps), _mm256_set1_ps(factor));
}
STRATA_SIMD void store256(void* to, __m256i value) { _mm256_storeu_si256(static_cast<__m256i*>(to), value); }
STRATA_SIMD __m256i fields_of(uint32_t word, __m256i shifts, int mask) {
  return bits_of(_mm256_srlv_epi32(_mm256_set1_epi32(static_cast<int>(word)), shifts), mask);
}

struct LatticeHead {
  F32x16 d;
};
STRATA_SIMD LatticeHead lattice_head(const uint8_t* b) { return {broadcast16_f16(word_at(b))}; }
// d · (0.5 + n) · factor, in this order.
STRATA_SIMD F32x16 half_step(F32x16 d, uint32_t n, float factor) {
  return d * broadcast16(0.5f + static_cast<float>(static_cast<int>(n))) * broadcast16(factor);
}

template <>
struct Format<DType::IQ2_XXS> : Blocks<256, 66> {
  using Head = LatticeHead;
  STRATA_SIMD void head(const uint8_t* b, Head& h) { h = lattice_head(b); }
  template <int s>
  STRATA_SIMD void group(const uint8_t* b, const Head& h, [[maybe_unused]] const void* grid, F32x16& w0, F32x16& w1) {
    const uint8_t* i = b + 2 + 8 * s;
    const uint32_t word = dword_at(i + 4);
    const __m256i q = rows8(static_cast<const uint64_t*>(grid), i[0], i[1], i[2], i[3]);
    const F32x16 scale = half_step(h.d, word >> 28, 0.25f);
    scaled32(with_signs(q, signs_of_word(word)), scale, scale, w0, w1);
  }
};

template <>
struct Format<DType::IQ2_XS> : Blocks<256, 74> {
  struct Head {
    float scale[16];
    uint32_t signs[8];
    uint16_t index[32];
  };
  STRATA_SIMD void head(const uint8_t* b, Head& h) {
    const __m256i shifts = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
    _mm256_storeu_ps(h.scale, half_steps(f16_at(b), fields_of(dword_at(b + 66), shifts, 15), 0.25f));
    _mm256_storeu_ps(h.scale + 8, half_steps(f16_at(b), fields_of(dword_at(b + 70), shifts, 15), 0.25f));
    const __m256i low = load256(b + 2), high = load256(b + 34), nine = _mm256_set1_epi16(511);
    store256(h.index, _mm256_and_si256(low, nine));
    store256(h.index + 16, _mm256_and_si256(high, nine));
    through_memory(h.index);
    const __m256i packed = _mm256_packus_epi16(_mm256_srli_epi16(low, 9), _mm256_srli_epi16(high, 9));
    store256(h.signs, even_signs(_mm256_permute4x64_epi64(packed, 0xd8)));
  }
  template <int s>
  STRATA_SIMD void group(const uint8_t*, const Head& h, [[maybe_unused]] const void* grid, F32x16& w0, F32x16& w1) {
    const uint16_t* i = h.index + 4 * s;
    scaled32(with_signs(rows8(static_cast<const uint64_t*>(grid), i[0], i[1], i[2], i[3]), h.signs[s]),
             broadcast16(h.scale[2 * s]), broadcast16(h.scale[2 * s + 1]), w0, w1);
  }
};

template <>
struct Format<DType::IQ2_S> : Blocks<256, 82> {
  using Head = LatticeHead;
  STRATA_SIMD void head(const uint8_t* b, Head& h) { h = lattice_head(b); }
  template <int s>
  STRATA_SIMD void group(const uint8_t* b, const Head& h, [[maybe_unused]] const void* grid, F32x16& w0, F32x16& w1) {
    const uint8_t* i = b + 2 + 4 * s;
    const uint32_t high = b[66 + s];
    const __m256i q = rows8(static_cast<const uint64_t*>(grid), i[0] | (high << 8 & 768), i[1] | (high << 6 & 768),
                            i[2] | (high << 4 & 768), i[3] | (high << 2 & 768));
    const F32x16 s0 = half_step(h.d, b[74 + s] & 15u, 0.25f), s1 = half_step(h.d, b[74 + s] >> 4, 0.25f);
    scaled32(with_signs(q, dword_at(b + 34 + 4 * s)), s0, s1, w0, w1);
  }
};

template <>
struct Format<DType::IQ3_XXS> : Blocks<256, 98> {
  struct Head {
    float scale[8];
    uint32_t signs[8];
  };
  STRATA_SIMD void head(const uint8_t* b, Head& h) {
    const __m256i words = load256(b + 66);
    _mm256_storeu_ps(h.scale, half_steps(f16_at(b), _mm256_srli_epi32(words, 28), 0.5f));
    const __m256i low = _mm256_or_si256(bits_of(words, 0x7f), bits_of(_mm256_slli_epi32(words, 1), 0x7f00));
    const __m256i high = _mm256_or_si256(bits_of(_mm256_slli_epi32(words, 2), 0x7f0000),
                                         bits_of(_mm256_slli_epi32(words, 3), 0x7f000000));
    store256(h.signs, even_signs(_mm256_or_si256(low, high)));
  }
  template <int s>
  STRATA_SIMD void group(const uint8_t* b, const Head& h, [[maybe_unused]] const void* grid, F32x16& w0, F32x16& w1) {
    const F32x16 scale = broadcast16(h.scale[s]);
    scaled32(with_signs(rows4(grid, b + 2 + 8 * s), h.signs[s]), scale, scale, w0, w1);
  }
};

template <>
struct Format<DType::IQ3_S> : Blocks<256, 110> {
  struct Head {
    float scale[8];
    uint16_t index[64];
  };
  STRATA_SIMD void head(const uint8_t* b, Head& h) {
    const __m256i n = fields_of(dword_at(b + 106), _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28), 15);
    const __m256i odd = _mm256_add_epi32(_mm256_add_epi32(n, n), _mm256_set1_epi32(1));
    _mm256_storeu_ps(h.scale, _mm256_mul_ps(_mm256_set1_ps(f16_at(b)), _mm256_cvtepi32_ps(odd)));
    const __m256i bit = _mm256_setr_epi16(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384,
                                          static_cast<int16_t>(0x8000));
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {  // the ninth bits of sixteen indices
      const __m256i all = _mm256_set1_epi16(static_cast<int16_t>(word_at(b + 66 + 2 * k)));
      const __m256i set = _mm256_cmpeq_epi16(_mm256_and_si256(all, bit), bit);
      const __m256i low = _mm256_cvtepu8_epi16(load128(b + 2 + 16 * k));
      store256(h.index + 16 * k, _mm256_or_si256(low, _mm256_and_si256(set, _mm256_set1_epi16(256))));
    }
    through_memory(h.index);
  }
  template <int s>
  STRATA_SIMD void group(const uint8_t* b, const Head& h, [[maybe_unused]] const void* grid, F32x16& w0, F32x16& w1) {
    const F32x16 scale = broadcast16(h.scale[s]);
    scaled32(with_signs(rows4(grid, h.index + 8 * s), dword_at(b + 74 + 4 * s)), scale, scale, w0, w1);
  }
};

}  // namespace
}  // namespace strata
