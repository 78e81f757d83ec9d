// The kernel of the SIMD arms, compiled once per instruction set (base/simd.h tells how). Lanes run along the blocks of
// a tile, so a score is one lane's own sum over the dims in order: no horizontal sums, and the same bits for any batch.
#pragma once

#include "base/fault.h"
#include "base/simd.h"
#include "ops/qsa_score/kernels.h"

namespace strata {
namespace {

// Vectors of 16 blocks summed at a time: what the registers hold of four heads.
#if defined(__AVX512F__)
constexpr int kVectors = 4;
#else
constexpr int kVectors = 1;
#endif

// --- Tiles -----------------------------------------------------------------------------------------------------------

// Words of a key: 32 bits each, one f32 or two 16-bit elements. Reads nothing behind the elements.
STRATA_SIMD uint32_t word_of(const char* key, int64_t word, int64_t d, bool narrow) {
  uint32_t result = 0;
  const int64_t bytes = narrow ? 2 * d - 4 * word : 4;
  __builtin_memcpy(&result, key + 4 * word, bytes >= 4 ? 4 : 2);
  return result;
}

// Sixteen words of sixteen keys, exchanged: block[w] then holds word w of each key. Plain form, for what is ragged.
struct WordBlock {
  uint32_t words[16][16];
};
STRATA_SIMD void gather_ragged(const char* keys, int64_t stride, int64_t count, int64_t first, int64_t words, int64_t d,
                               bool narrow, WordBlock& block) {
  for (int64_t w = 0; w < 16; ++w)
    for (int64_t b = 0; b < 16; ++b)
      block.words[w][b] = w < words && b < count ? word_of(keys + b * stride, first + w, d, narrow) : 0;
}

#if defined(__AVX512F__)

STRATA_SIMD void gather_whole(const char* keys, int64_t stride, int64_t first, WordBlock& block) {
  __m512i r[16], t[16];
  for (int i = 0; i < 16; ++i) r[i] = _mm512_loadu_si512(keys + i * stride + 4 * first);
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
  for (int i = 0; i < 16; i += 4)
    for (int j = 0; j < 2; ++j) {
      r[i + 2 * j] = _mm512_unpacklo_epi64(t[i + j], t[i + j + 2]);
      r[i + 2 * j + 1] = _mm512_unpackhi_epi64(t[i + j], t[i + j + 2]);
    }
  // r[4g + c] holds word c of each quarter for keys 4g .. 4g + 3.
  for (int c = 0; c < 4; ++c) {
    const __m512i low = _mm512_shuffle_i32x4(r[c], r[4 + c], 0x88), high = _mm512_shuffle_i32x4(r[c], r[4 + c], 0xdd);
    const __m512i low2 = _mm512_shuffle_i32x4(r[8 + c], r[12 + c], 0x88);
    const __m512i high2 = _mm512_shuffle_i32x4(r[8 + c], r[12 + c], 0xdd);
    _mm512_storeu_si512(block.words[c], _mm512_shuffle_i32x4(low, low2, 0x88));
    _mm512_storeu_si512(block.words[4 + c], _mm512_shuffle_i32x4(high, high2, 0x88));
    _mm512_storeu_si512(block.words[8 + c], _mm512_shuffle_i32x4(low, low2, 0xdd));
    _mm512_storeu_si512(block.words[12 + c], _mm512_shuffle_i32x4(high, high2, 0xdd));
  }
}

#elif defined(__AVX2__)

STRATA_SIMD void gather_quarter(const char* keys, int64_t stride, uint32_t* out) {
  __m256i r[8], t[8];
  for (int i = 0; i < 8; ++i) r[i] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(keys + i * stride));
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_epi32(r[i], r[i + 1]);
    t[i + 1] = _mm256_unpackhi_epi32(r[i], r[i + 1]);
  }
  for (int i = 0; i < 8; i += 4)
    for (int j = 0; j < 2; ++j) {
      r[i + 2 * j] = _mm256_unpacklo_epi64(t[i + j], t[i + j + 2]);
      r[i + 2 * j + 1] = _mm256_unpackhi_epi64(t[i + j], t[i + j + 2]);
    }
  for (int c = 0; c < 4; ++c) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 16 * c), _mm256_permute2x128_si256(r[c], r[4 + c], 0x20));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 16 * (4 + c)),
                        _mm256_permute2x128_si256(r[c], r[4 + c], 0x31));
  }
}
STRATA_SIMD void gather_whole(const char* keys, int64_t stride, int64_t first, WordBlock& block) {
  for (int half = 0; half < 2; ++half)
    for (int words = 0; words < 2; ++words)
      gather_quarter(keys + 8 * half * stride + 4 * first + 32 * words, stride, &block.words[8 * words][8 * half]);
}

#else

STRATA_SIMD void gather_whole(const char* keys, int64_t stride, int64_t first, WordBlock& block) {
  gather_ragged(keys, stride, 16, first, 16, 4 * (first + 16), false, block);
}

#endif

// The low or the high halves of sixteen words as f32: the upper half of an f32 is a bf16.
STRATA_SIMD void store_halves(const uint32_t* words, QsaForm form, bool high, float* out) {
  if (form == QsaForm::Bf16) {
    uint32_t bits[16];
    for (int b = 0; b < 16; ++b) bits[b] = high ? words[b] & 0xffff0000u : words[b] << 16;
    __builtin_memcpy(out, bits, sizeof bits);
  } else {
    uint16_t halves[16];
    for (int b = 0; b < 16; ++b) halves[b] = static_cast<uint16_t>(high ? words[b] >> 16 : words[b]);
    store16(out, load16_f16(halves));
  }
}

STRATA_SIMD void exchange(WordBlock& block) {
  for (int w = 0; w < 16; ++w)
    for (int b = 0; b < w; ++b) {
      const uint32_t word = block.words[w][b];
      block.words[w][b] = block.words[b][w];
      block.words[b][w] = word;
    }
}

STRATA_SIMD void pack_tile(const void* keys, int64_t stride, int64_t count, int64_t d, QsaForm form, QsaLayout layout,
                           float* tile) {
  const bool narrow = form != QsaForm::F32;
  const int64_t words = narrow ? (d + 1) / 2 : d, whole_words = narrow ? d / 2 : d;
  for (int64_t lane = 0; lane < kQsaTile; lane += 16) {
    const char* start = static_cast<const char*>(keys) + lane * stride;
    for (int64_t first = 0; first < words; first += 16) {
      WordBlock block;
      if (count >= lane + 16 && first + 16 <= whole_words)
        gather_whole(start, stride, first, block);
      else
        gather_ragged(start, stride, count - lane, first, words - first, d, narrow, block);
      if (fault(Fault::TransposeTile)) exchange(block);
      for (int64_t w = first; w < words && w < first + 16; ++w) {
        const uint32_t* row = block.words[w - first];
        if (!narrow || layout == QsaLayout::Pairs) {
          __builtin_memcpy(tile + w * kQsaTile + lane, row, sizeof block.words[0]);
          continue;
        }
        store_halves(row, form, false, tile + 2 * w * kQsaTile + lane);
        if (2 * w + 1 < d) store_halves(row, form, true, tile + (2 * w + 1) * kQsaTile + lane);
      }
    }
  }
}

// --- Scores ----------------------------------------------------------------------------------------------------------

STRATA_SIMD F32x16 multiply_add(F32x16 key, F32x16 query, F32x16 sum, QsaLayout layout) {
#if defined(__AVX512BF16__)
  if (layout == QsaLayout::Pairs)
    return {_mm512_dpbf16_ps(sum.v, (__m512bh)_mm512_castps_si512(key.v), (__m512bh)_mm512_castps_si512(query.v))};
#endif
  static_cast<void>(layout);
  return fma16(key, query, sum);
}

// Adds relu of `Heads` heads to the scores of kVectors · 16 blocks.
template <int Heads>
STRATA_SIMD void add_heads(const float* tile, const float* query, int64_t steps, QsaLayout layout, F32x16* scores) {
  F32x16 sums[Heads][kVectors];
#pragma GCC unroll 4
  for (int h = 0; h < Heads; ++h)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sums[h][v] = zero16();
  for (int64_t s = 0; s < steps; ++s) {
    if (fault(Fault::DropLane) && s % 16 == 5) continue;
    F32x16 keys[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) keys[v] = load16(tile + s * kQsaTile + 16 * v);
#pragma GCC unroll 4
    for (int h = 0; h < Heads; ++h) {
      const F32x16 q = broadcast16(query[s * Heads + h]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[h][v] = multiply_add(keys[v], q, sums[h][v], layout);
    }
  }
#pragma GCC unroll 4
  for (int h = 0; h < Heads; ++h)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) scores[v] = scores[v] + relu16(sums[h][v]);
}

STRATA_SIMD void score_tile(const float* tile, const float* query, int64_t steps, int64_t heads, int64_t count,
                            QsaLayout layout, float* scores) {
  if (fault(Fault::SkipTail) && count < kQsaTile) return;
  for (int64_t lane = 0; lane < count; lane += 16 * kVectors) {
    F32x16 sums[kVectors];
    for (int v = 0; v < kVectors; ++v) sums[v] = zero16();
    const float* q = query;
    int64_t left = heads;
    for (; left >= 4; left -= 4, q += 4 * steps) add_heads<4>(tile + lane, q, steps, layout, sums);
    if (left == 3) add_heads<3>(tile + lane, q, steps, layout, sums);
    if (left == 2) add_heads<2>(tile + lane, q, steps, layout, sums);
    if (left == 1) add_heads<1>(tile + lane, q, steps, layout, sums);
    for (int v = 0; v < kVectors; ++v) {
      const int64_t first = lane + 16 * v;
      if (first + 16 <= count)
        store16(scores + first, sums[v]);
      else if (first < count)
        store16_first(scores + first, sums[v], count - first);
    }
  }
}

// What a file exports: kernels of one layout.
template <QsaLayout Layout>
struct Kernels {
  static void pack(const void* keys, int64_t stride, int64_t count, int64_t d, QsaForm form, float* tile) {
    pack_tile(keys, stride, count, d, form, Layout, tile);
  }
  static void score(const float* tile, const float* query, int64_t steps, int64_t heads, int64_t count, float* scores) {
    score_tile(tile, query, steps, heads, count, Layout, scores);
  }
  static constexpr QsaScoreKernels table() { return {Layout, pack, score}; }
};

}  // namespace
}  // namespace strata
