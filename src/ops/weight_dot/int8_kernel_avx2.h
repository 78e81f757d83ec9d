// Sums of products of signed levels and rounded activations for AVX2. A pair of products of bytes is at most
// 2 · 128 · 127, so that sums of pairs fit sixteen bits and nothing saturates. A product has 8 lanes: the eight sums of
// four neighbours in a block, times the block's scale, by fused multiply-adds in the order of the blocks; sums of minima
// have lanes of their own, one a block of a piece.
#pragma once

#include "base/simd.h"
#include "ops/weight_dot/int8_levels.h"
#include "ops/weight_dot/simd_sums.h"

namespace strata {
namespace {

constexpr int64_t kTileRows = 32;  // of x, that meet unpacked weights
constexpr int kTileColumns = 4;
constexpr int64_t kAhead = 2048;  // bytes between what is read and what is asked for

// A piece of one weight row.
struct UnpackedPiece {
  __m256i levels[8], magnitudes[8];
  __m256i halves[8];  // whole scales, of blocks whose halves have one each
  float scales[8];
  __m256 minima;
};

template <DType type, int b>
STRATA_SIMD void unpack_block(const uint8_t* p, const void* grid, UnpackedPiece& w) {
  w.levels[b] = Levels<type>::template block<b>(p, grid);
  if constexpr (!Is<type>::kMinima) w.magnitudes[b] = _mm256_abs_epi8(w.levels[b]);
}

template <DType type>
void unpack_piece(const uint8_t* p, const void* grid, UnpackedPiece& w) {
  using F = Levels<type>;
  unpack_block<type, 0>(p, grid, w);
  unpack_block<type, 1>(p, grid, w);
  unpack_block<type, 2>(p, grid, w);
  unpack_block<type, 3>(p, grid, w);
  unpack_block<type, 4>(p, grid, w);
  unpack_block<type, 5>(p, grid, w);
  unpack_block<type, 6>(p, grid, w);
  unpack_block<type, 7>(p, grid, w);
  _mm256_storeu_ps(w.scales, F::scales(p));
  if constexpr (Is<type>::kMinima) w.minima = F::minima(p);
  if constexpr (Is<type>::kHalves) {
    int8_t halves[16];
    _mm_storeu_si128(reinterpret_cast<__m128i*>(halves), F::halves(p));
    for (int b = 0; b < 8; ++b) {
      const int first = halves[start_slot(2 * b)], second = halves[start_slot(2 * b + 1)];
      w.halves[b] = _mm256_set_m128i(_mm_set1_epi32(second), _mm_set1_epi32(first));
    }
  }
}

struct Sums8 {
  __m256 products, minima;
};

template <DType type>
STRATA_SIMD void add_piece(const UnpackedPiece& w, const Int8Piece& x, Sums8& sums) {
#pragma GCC unroll 8
  for (int b = 0; b < 8; ++b) {
    const __m256i q = load256(x.q + 64 * (b % 4) + 32 * (b / 4));
    const __m256i pairs = Is<type>::kMinima ? _mm256_maddubs_epi16(w.levels[b], q)
                                            : _mm256_maddubs_epi16(w.magnitudes[b], _mm256_sign_epi8(q, w.levels[b]));
    __m256i whole = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
    if constexpr (Is<type>::kHalves) whole = _mm256_mullo_epi32(whole, w.halves[b]);
    const __m256 scale = _mm256_set1_ps(w.scales[b] * x.scale[b]);
    sums.products = _mm256_fmadd_ps(_mm256_cvtepi32_ps(whole), scale, sums.products);
  }
  if constexpr (Is<type>::kMinima) sums.minima = _mm256_fmadd_ps(w.minima, _mm256_loadu_ps(x.sum), sums.minima);
}

template <DType type>
STRATA_SIMD float total_of(const Sums8& sums) {
  const __m256 all = Is<type>::kMinima ? _mm256_sub_ps(sums.products, sums.minima) : sums.products;
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps(all, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
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
  for (int64_t p = 0; p * kPiece < a.in; ++p) {
    const int64_t left = a.in - p * kPiece;
    for (int64_t c = 0; c < wide; ++c) {
      const uint8_t* w = a.weights + (column + c) * a.weight_stride + p * kBytes;
#pragma GCC unroll 8
      for (int64_t line = 0; line < kBytes; line += 64)
        _mm_prefetch(reinterpret_cast<const char*>(w + kAhead + line), _MM_HINT_T0);
      unpack_piece<type>(last_piece<type>(w, left < kPiece ? left : kPiece, copy), a.grid, pieces[c]);
    }
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < wide; ++c) add_piece<type>(pieces[c], a.x[first + r][p], sums[r][c]);
  }
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < wide; ++c) {
      const float product = total_of<type>(sums[r][c]) * a.scale;
      a.y[first + r][column + c] = a.bias != nullptr ? product + a.bias[column + c] : product;
    }
}

template <DType type>
void few(const Int8Few& a) {
  for (int64_t column = 0; column < a.count; column += kTileColumns)
    for (int64_t first = 0; first < a.rows; first += kTileRows) few_tile<type>(a, first, column);
}

}  // namespace
}  // namespace strata
