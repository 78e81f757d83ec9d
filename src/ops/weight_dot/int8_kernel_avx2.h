// Sums of products of signed levels and rounded activations for AVX2. A pair of products of bytes is at most
// 2 · 128 · 127, so that sums of pairs fit sixteen bits and nothing saturates. A product has 8 lanes: the eight sums of
// four neighbours in a block, times the block's scale, by fused multiply-adds in the order of the blocks; sums of
// minima have lanes of their own, one a block of a piece.
#pragma once

#include "base/simd.h"
#include "ops/weight_dot/int8_levels.h"
#include "ops/weight_dot/simd_sums.h"

namespace strata {
namespace {

constexpr int64_t kTileRows = 32;  // of x, that meet unpacked weights
constexpr int kTileColumns = 4;
constexpr int64_t kAhead = 2048;  // bytes between what is read and what is asked for

struct Sums8 {
  __m256 products, minima;
};

// A block of 32: eight sums of four products.
template <DType type>
STRATA_SIMD __m256i block_sums(__m256i levels, __m256i magnitudes, const Int8Piece& x, int b) {
  const __m256i q = load256(x.q + 32 * b);
  const __m256i pairs = Is<type>::kMinima ? _mm256_maddubs_epi16(levels, q)
                                          : _mm256_maddubs_epi16(magnitudes, _mm256_sign_epi8(q, levels));
  return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

// What a piece of one weight row has beside levels.
struct PieceScales {
  __m256 scales, minima;
  int32_t halves[16];
};
template <DType type>
STRATA_SIMD void scales_of(const uint8_t* p, PieceScales& w) {
  using F = Levels<type>;
  w.scales = F::scales(p);
  if constexpr (Is<type>::kMinima) w.minima = F::minima(p);
  if constexpr (Is<type>::kHalves) {
    const __m128i halves = F::halves(p);
    store256(w.halves, _mm256_cvtepi8_epi32(halves));
    store256(w.halves + 8, _mm256_cvtepi8_epi32(_mm_srli_si128(halves, 8)));
  }
}

// levels(Constant<b>) and magnitudes(Constant<b>, levels) of the eight blocks.
template <DType type, class LevelsOf, class MagnitudesOf>
STRATA_SIMD void add_piece(const PieceScales& w, const LevelsOf& levels, const MagnitudesOf& magnitudes,
                           const Int8Piece& x, Sums8& sums) {
  float scales[8];
  _mm256_storeu_ps(scales, _mm256_mul_ps(w.scales, _mm256_loadu_ps(x.scale)));
  repeat<8>([&](auto at) __attribute__((always_inline)) {
    constexpr int b = decltype(at)::value;
    const __m256i block = levels(at);
    __m256i whole = block_sums<type>(block, magnitudes(at, block), x, b);
    if constexpr (Is<type>::kHalves) {
      const __m128i first = _mm_set1_epi32(w.halves[start_slot(2 * b)]);
      whole = _mm256_mullo_epi32(whole, _mm256_set_m128i(_mm_set1_epi32(w.halves[start_slot(2 * b + 1)]), first));
    }
    sums.products = _mm256_fmadd_ps(_mm256_cvtepi32_ps(whole), _mm256_set1_ps(scales[b]), sums.products);
  });
  if constexpr (Is<type>::kMinima) sums.minima = _mm256_fmadd_ps(w.minima, _mm256_loadu_ps(x.sum), sums.minima);
}

// Behind the weight rows of a tile, or in long rows a little ahead in each.
STRATA_SIMD int64_t ahead_of(const Int8Few& a, int columns) {
  return a.weight_stride < 2 * kAhead ? columns * a.weight_stride : kAhead;
}
STRATA_SIMD void ask_for(const uint8_t* p, int64_t bytes) {
#pragma GCC unroll 8
  for (int64_t line = 0; line < bytes; line += 64) _mm_prefetch(reinterpret_cast<const char*>(p + line), _MM_HINT_T0);
}

template <DType type>
STRATA_SIMD float total_of(const Sums8& sums) {
  const __m256 all = Is<type>::kMinima ? _mm256_sub_ps(sums.products, sums.minima) : sums.products;
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps(all, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

STRATA_SIMD float with_bias(float total, const Int8Few& a, int64_t column) {
  const float product = total * a.scale;
  return a.bias != nullptr ? product + a.bias[column] : product;
}

// Two weight rows at a time meet one row of x as they are unpacked: two chains of sums.
template <DType type>
void one_row(const Int8Few& a) {
  constexpr int64_t kBytes = kPieceBytes<type>;
  uint8_t copy[kBytes];
  const int64_t ahead = ahead_of(a, 2);
  for (int64_t column = 0; column < a.count; column += 2) {
    const int64_t wide = a.count - column < 2 ? 1 : 2;
    Sums8 sums[2] = {{_mm256_setzero_ps(), _mm256_setzero_ps()}, {_mm256_setzero_ps(), _mm256_setzero_ps()}};
    for (int64_t p = 0; p * kPiece < a.in; ++p) {
      const int64_t left = a.in - p * kPiece;
      for (int64_t c = 0; c < wide; ++c) {
        const uint8_t* stored = a.weights + (column + c) * a.weight_stride + p * kBytes;
        ask_for(stored + ahead, kBytes);
        const uint8_t* w = last_piece<type>(stored, left < kPiece ? left : kPiece, copy);
        PieceScales scales;
        scales_of<type>(w, scales);
        add_piece<type>(
            scales,
            [&](auto b)
                __attribute__((always_inline)) { return Levels<type>::template block<decltype(b)::value>(w, a.grid); },
            [](auto, __m256i levels) __attribute__((always_inline)) { return _mm256_abs_epi8(levels); }, a.x[0][p],
            sums[c]);
      }
    }
    for (int64_t c = 0; c < wide; ++c) a.y[0][column + c] = with_bias(total_of<type>(sums[c]), a, column + c);
  }
}

// A piece of one weight row that many rows of x meet.
struct UnpackedPiece {
  __m256i levels[8], magnitudes[8];
  PieceScales scales;
};
template <DType type>
STRATA_SIMD void unpack_piece(const uint8_t* p, const void* grid, UnpackedPiece& w) {
  repeat<8>([&](auto at) __attribute__((always_inline)) {
    constexpr int b = decltype(at)::value;
    w.levels[b] = Levels<type>::template block<b>(p, grid);
    w.magnitudes[b] = _mm256_abs_epi8(w.levels[b]);
  });
  scales_of<type>(p, w.scales);
}

// Up to kTileRows rows of x from `first` on with up to kTileColumns weight rows.
template <DType type>
void few_tile(const Int8Few& a, int64_t first, int64_t column) {
  constexpr int64_t kBytes = kPieceBytes<type>;
  const int64_t rows = a.rows - first < kTileRows ? a.rows - first : kTileRows;
  const int64_t wide = a.count - column < kTileColumns ? a.count - column : kTileColumns;
  Sums8 sums[kTileRows][kTileColumns];
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < wide; ++c) sums[r][c] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  UnpackedPiece pieces[kTileColumns];
  uint8_t copy[kBytes];
  const int64_t ahead = ahead_of(a, kTileColumns);
  for (int64_t p = 0; p * kPiece < a.in; ++p) {
    const int64_t left = a.in - p * kPiece;
    for (int64_t c = 0; c < wide; ++c) {
      const uint8_t* stored = a.weights + (column + c) * a.weight_stride + p * kBytes;
      ask_for(stored + ahead, kBytes);
      unpack_piece<type>(last_piece<type>(stored, left < kPiece ? left : kPiece, copy), a.grid, pieces[c]);
    }
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < wide; ++c) {
        const UnpackedPiece& w = pieces[c];
        add_piece<type>(
            w.scales, [&](auto b) __attribute__((always_inline)) { return w.levels[decltype(b)::value]; },
            [&](auto b, __m256i) __attribute__((always_inline)) { return w.magnitudes[decltype(b)::value]; },
            a.x[first + r][p], sums[r][c]);
      }
  }
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < wide; ++c)
      a.y[first + r][column + c] = with_bias(total_of<type>(sums[r][c]), a, column + c);
}

template <DType type>
void few(const Int8Few& a) {
  if (a.rows == 1) return one_row<type>(a);
  for (int64_t column = 0; column < a.count; column += kTileColumns)
    for (int64_t first = 0; first < a.rows; first += kTileRows) few_tile<type>(a, first, column);
}

}  // namespace
}  // namespace strata
