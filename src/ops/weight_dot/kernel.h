// Sums of products of weights and f32, compiled once per instruction set. A sum has 16 lanes: lane l takes elements l,
// l + 16, ... of a chunk by fused multiply-adds in order; then the tree of sum16 joins the lanes, and the sums of
// chunks are added in order. Tiles only decide which of these independent sums are in work together: no bit depends on
// them.
#pragma once

#include "base/simd.h"
#include "ops/weight_dot/formats.h"
#include "ops/weight_dot/simd_sums.h"
#include "ops/weight_dot/types.h"

namespace strata {
namespace {

// Rows of x and weight rows whose sums fill the registers: of a tile of decoded weights, and where weights are decoded
// for up to 4 rows of x.
#if defined(__AVX512F__)
constexpr int kTileRows = 6, kTileColumns = 4;
constexpr int few_columns(int) { return 4; }
#else
constexpr int kTileRows = 2, kTileColumns = 2;
constexpr int few_columns(int rows) { return rows <= 1 ? 4 : (rows <= 2 ? 2 : 1); }
#endif
constexpr int kMostFew = 8;
constexpr int64_t kAhead = 2048;  // bytes between what is read and what is asked for

template <int n>
STRATA_SIMD void sums_of(const F32x16 (&lanes)[n], float (&sums)[n + 3]) {
#pragma GCC unroll 8
  for (int i = 0; i < n; i += 4) {
    const int b = i + 1 < n ? i + 1 : i, c = i + 2 < n ? i + 2 : i, d = i + 3 < n ? i + 3 : i;
    _mm_storeu_ps(sums + i, sums4(lanes[i], lanes[b], lanes[c], lanes[d]));
  }
}

// `rows` rows of x with `columns` weight rows from w on; places behind the last row of the weights are the last again.
template <DType type, int rows, int columns>
STRATA_SIMD void few_tile(const DotFew& a, int64_t column, const float* const* x, float* totals) {
  using F = Format<type>;
  const uint8_t* w[columns];
  for (int c = 0; c < columns; ++c) {
    const int64_t at = column + c < a.count ? column + c : a.count - 1;
    w[c] = a.weights + at * a.weight_stride;
  }
  const int64_t row_bytes = a.in / F::kElements * F::kBytes, after = columns * a.weight_stride - row_bytes;
  int64_t byte = 0;
  for (int64_t begin = 0; begin < a.in; begin += kDotChunk) {
    const int64_t end = begin + kDotChunk < a.in ? begin + kDotChunk : a.in;
    F32x16 lanes[rows * columns];
#pragma GCC unroll 16
    for (F32x16& lane : lanes) lane = zero16();
    for (int64_t i = begin; i < end; i += F::kElements, byte += F::kBytes) {
      const int64_t ahead = byte + kAhead + (byte + kAhead < row_bytes ? 0 : after);
      typename F::Head head[columns];
#pragma GCC unroll 4
      for (int c = 0; c < columns; ++c) {
        F::head(w[c] + byte, head[c]);
#pragma GCC unroll 4
        for (int line = 0; line < F::kBytes; line += 64)
          _mm_prefetch(reinterpret_cast<const char*>(w[c] + ahead + line), _MM_HINT_T0);
      }
      repeat<F::kElements / 32>([&](auto s) __attribute__((always_inline)) {
        F32x16 w0[columns], w1[columns];
#pragma GCC unroll 4
        for (int c = 0; c < columns; ++c)
          F::template group<decltype(s)::value>(w[c] + byte, head[c], a.grid, w0[c], w1[c]);
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) {
          const float* from = x[r] + i + 32 * decltype(s)::value;
          const F32x16 x0 = load16(from), x1 = load16(from + 16);
#pragma GCC unroll 4
          for (int c = 0; c < columns; ++c) {
            F32x16& lane = lanes[r * columns + c];
            lane = fma16(w1[c], x1, fma16(w0[c], x0, lane));
          }
        }
      });
    }
    float sums[rows * columns + 3];
    sums_of(lanes, sums);
    for (int k = 0; k < rows * columns; ++k) totals[k] = begin == 0 ? sums[k] : totals[k] + sums[k];
  }
}

// Rows first .. first + rows - 1 of x (or up to the last) and `columns` weight rows.
template <DType type, int rows, int columns>
STRATA_SIMD void few_results(const DotFew& a, int64_t first, int64_t column) {
  const int64_t count = a.rows - first < rows ? a.rows - first : rows;
  const float* x[rows];
  for (int r = 0; r < rows; ++r) x[r] = a.x[first + (r < count ? r : count - 1)];
  float totals[rows * columns] = {};
  few_tile<type, rows, columns>(a, column, x, totals);
  const int64_t wide = a.count - column < columns ? a.count - column : columns;
  for (int64_t r = 0; r < count; ++r)
    for (int64_t c = 0; c < wide; ++c) {
      const float product = totals[r * columns + c] * a.scale;
      a.y[first + r][column + c] = a.bias != nullptr ? product + a.bias[column + c] : product;
    }
}

template <DType type, int rows>
void few_rows(const DotFew& a) {
  constexpr int columns = few_columns(rows);
  // More rows than the registers hold come in turn, while the weights are in the nearest cache.
  for (int64_t column = 0; column < a.count; column += columns)
    for (int64_t first = 0; first < a.rows; first += rows) few_results<type, rows, columns>(a, first, column);
}

template <DType type>
void few(const DotFew& a) {
  if (a.rows == 1) return few_rows<type, 1>(a);
  if (a.rows == 2) return few_rows<type, 2>(a);
  few_rows<type, 4>(a);
}

template <DType type>
void decode(const void* blocks, float* out, int64_t elements, const void* grid, int64_t ahead) {
  using F = Format<type>;
  const auto* block = static_cast<const uint8_t*>(blocks);
  for (int64_t i = 0; i < elements; i += F::kElements, block += F::kBytes) {
#pragma GCC unroll 4
    for (int line = 0; line < F::kBytes; line += 64)
      _mm_prefetch(reinterpret_cast<const char*>(block + ahead + line), _MM_HINT_T1);
    typename F::Head head;
    F::head(block, head);
    repeat<F::kElements / 32>([&](auto s) __attribute__((always_inline)) {
      F32x16 w0, w1;
      F::template group<decltype(s)::value>(block, head, grid, w0, w1);
      store16(out + i + 32 * decltype(s)::value, w0);
      store16(out + i + 32 * decltype(s)::value + 16, w1);
    });
  }
}

// What belongs to a type that has a Format.
template <template <DType> class Of, class Result>
Result of_type(DType type) {
  switch (type) {
    case DType::F32: return Of<DType::F32>::value;
    case DType::F16: return Of<DType::F16>::value;
    case DType::BF16: return Of<DType::BF16>::value;
    default: return of_level_type<Of, Result>(type);
  }
}
template <DType type>
struct FewOf {
  static constexpr DotFewFn value = few<type>;
};
template <DType type>
struct DecodeOf {
  static constexpr DotDecodeFn value = decode<type>;
};
DotFewFn few_of(DType type) { return of_type<FewOf, DotFewFn>(type); }
DotDecodeFn decode_of(DType type) { return of_type<DecodeOf, DotDecodeFn>(type); }

// Sums of `rows` rows of x with a tile of columns go to y.
template <int rows>
STRATA_SIMD void put_tile(const DotPanel& a, int64_t row, int64_t column, const F32x16 (&lanes)[rows * kTileColumns]) {
  const int64_t count = a.count - column < kTileColumns ? a.count - column : kTileColumns;
#if defined(__AVX512F__)
  const __mmask8 present = static_cast<__mmask8>((1 << count) - 1);
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
    const F32x16* four = lanes + r * kTileColumns;
    __m128 sum = sums4(four[0], four[1], four[2], four[3]);
    float* y = a.y[row + r] + a.column + column;
    if (a.add) sum = _mm_add_ps(_mm_maskz_loadu_ps(present, y), sum);
    _mm_mask_storeu_ps(y, present, sum);
  }
#else
  float sums[rows * kTileColumns + 3];
  sums_of(lanes, sums);
  for (int r = 0; r < rows; ++r) {
    float* y = a.y[row + r] + a.column + column;
    const float* sum = sums + r * kTileColumns;
    for (int64_t c = 0; c < count; ++c) y[c] = a.add ? y[c] + sum[c] : sum[c];
  }
#endif
}

template <int rows>
STRATA_SIMD void tile(const DotPanel& a, int64_t row, int64_t column) {
  const float* w = a.weights + column * kPanelStride;
  const float* x[rows];
  for (int r = 0; r < rows; ++r) x[r] = a.x[row + r] + a.first;
  F32x16 lanes[rows * kTileColumns];
#pragma GCC unroll 32
  for (F32x16& lane : lanes) lane = zero16();
  auto step = [&](int64_t i, auto load) __attribute__((always_inline)) {
    F32x16 column_of[kTileColumns];
#pragma GCC unroll 8
    for (int c = 0; c < kTileColumns; ++c) column_of[c] = load16(w + c * kPanelStride + i);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const F32x16 value = load(x[r] + i);
#pragma GCC unroll 8
      for (int c = 0; c < kTileColumns; ++c)
        lanes[r * kTileColumns + c] = fma16(column_of[c], value, lanes[r * kTileColumns + c]);
    }
  };
  const int64_t whole = a.terms / 16 * 16, rest = a.terms - whole;
  for (int64_t i = 0; i < whole; i += 16)
    step(
        i, [](const float* p) __attribute__((always_inline)) { return load16(p); });
  if (rest > 0)
    step(
        whole, [rest](const float* p) __attribute__((always_inline)) { return load16_first(p, rest); });
  put_tile<rows>(a, row, column, lanes);
}

template <int rows>
void tiles(const DotPanel& a, int64_t row) {
  for (int64_t column = 0; column < a.count; column += kTileColumns) tile<rows>(a, row, column);
}

// A tile of x stays in the nearest cache while the panel passes.
void panel(const DotPanel& a) {
  int64_t row = 0;
  for (; row + kTileRows <= a.rows; row += kTileRows) tiles<kTileRows>(a, row);
  for (; kTileRows > 4 && row + 4 <= a.rows; row += 4) tiles<4>(a, row);
  for (; row + 2 <= a.rows; row += 2) tiles<2>(a, row);
  if (row < a.rows) tiles<1>(a, row);
}

// The activation of gated units.
void activate(const float* gate, const float* up, float* out, int64_t count) {
  for (int64_t i = 0; i < count; i += 16) {
    const int64_t n = count - i < 16 ? count - i : 16;
    const F32x16 g = load16_first(gate + i, n), one = broadcast16(1.0f);
    store16_first(out + i, g / (one + exp16(zero16() - g)) * load16_first(up + i, n), n);
  }
}

}  // namespace
}  // namespace strata
