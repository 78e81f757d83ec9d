// Sums of products of integer levels and rounded activations for AVX-512 with VNNI. Sums of a block of 32 are exact. A
// product has 16 lanes: lane l of 8 takes block l of every other piece of 256 from the first on, lane 8 + l that of the
// pieces between, by fused multiply-adds of whole sums with their scales in order; then the tree of sum16 joins the
// lanes. One row of x and many go through the same sums, so that no bit depends on how many there are. Lanes behind the
// end of a row add nothing.
//
// Lattice<type> comes from the header that is included before: of lattice types unpack_two(p, q, grid, first, second)
// for two pieces; whether kTransposed; levels are kStep times the bytes that it gives, less the offset.
#pragma once

#include "base/simd.h"
#include "ops/weight_dot/int8_levels.h"
#include "ops/weight_dot/int8_narrow.h"
#include "ops/weight_dot/int8_types.h"
#include "ops/weight_dot/simd_sums.h"

namespace strata {
namespace {

constexpr int kFewRows = 8, kTurnsRows = 16;  // unpacking weights twice costs less than a panel
constexpr int kPanelGroups = 2;
constexpr int64_t kAhead = 6144;  // bytes between what is read and what is asked for

STRATA_SIMD __m512i load512(const void* p) { return _mm512_loadu_si512(p); }

// Sums of blocks from those of their halves in two pieces, in the order of the blocks.
STRATA_SIMD __m512i block_sums(__m512i first, __m512i second) {
  return _mm512_add_epi32(_mm512_shuffle_i32x4(first, second, 0x88), _mm512_shuffle_i32x4(first, second, 0xdd));
}

template <DType type>
constexpr bool transposed() {
  if constexpr (Is<type>::kLattice) return Lattice<type>::kTransposed;
  return type == DType::Q2_0;
}
template <DType type>
constexpr int step() {
  if constexpr (Is<type>::kLattice) return Lattice<type>::kStep;
  return 1;
}

template <DType type>
STRATA_SIMD void unpack(const uint8_t* p, const void* grid, __m512i (&z)[4]) {
  z[0] = Levels<type>::template levels<0>(p, grid);
  z[1] = Levels<type>::template levels<1>(p, grid);
  z[2] = Levels<type>::template levels<2>(p, grid);
  z[3] = Levels<type>::template levels<3>(p, grid);
}
template <DType type>
STRATA_SIMD void unpack_both(const uint8_t* p, const uint8_t* q, const void* grid, __m512i (&first)[4],
                             __m512i (&second)[4]) {
  if constexpr (Is<type>::kLattice) {
    Lattice<type>::unpack_two(p, q, grid, first, second);
  } else {
    unpack<type>(p, grid, first);
    unpack<type>(q, grid, second);
  }
}

// Sums of eight from those of sixteen elements in order, of two pieces.
STRATA_SIMD __m512i block_sums_transposed_x(__m512i first, __m512i second) {
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const __m512i odd = _mm512_or_si512(even, _mm512_set1_epi32(1));
  return _mm512_add_epi32(_mm512_permutex2var_epi32(first, even, second),
                          _mm512_permutex2var_epi32(first, odd, second));
}

// Scales of the blocks of two pieces.
template <DType type>
STRATA_SIMD __m512 scales_of_both(const uint8_t* p, const uint8_t* q) {
  if constexpr (Is<type>::kLattice) return Lattice<type>::scales(p, q);
  return both8(Levels<type>::scales(p), Levels<type>::scales(q));
}
// Whole scales of halves of blocks, in the order of their sums.
template <DType type>
STRATA_SIMD void halves_of_both(const uint8_t* p, const uint8_t* q, __m512i& first, __m512i& second) {
  if constexpr (transposed<type>()) {
    Lattice<type>::halves(p, q, first, second);
  } else {
    first = _mm512_cvtepi8_epi32(Levels<type>::halves(p));
    second = _mm512_cvtepi8_epi32(Levels<type>::halves(q));
  }
}

// Sums of sixteen bytes' products, where halves of blocks have scales of their own multiplied with them.
template <DType type>
STRATA_SIMD __m512i piece_sums(const __m512i (&z)[4], const Int8Piece& x, __m512i halves) {
  constexpr bool kBegins = Is<type>::kHalves || (!Is<type>::kMinima && step<type>() == 1);
  __m512i sums = kBegins ? load512(x.start) : _mm512_setzero_si512();
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) sums = _mm512_dpbusd_epi32(sums, z[j], load512(x.q + 64 * j));
  return Is<type>::kHalves ? _mm512_mullo_epi32(sums, halves) : sums;
}

// What two pieces of a weight row hold, unpacked once for all rows of x; or one, and nothing of the second.
template <DType type>
struct Unpacked {
  __m512i first[4], second[4];
  __m512i first_halves, second_halves;
  __m512 scales, minima;
};

template <DType type, int pieces>
STRATA_SIMD void unpack_pieces(const uint8_t* p, const uint8_t* q, const void* grid, Unpacked<type>& w) {
  using F = Levels<type>;
  if constexpr (pieces == 2 || Is<type>::kLattice) {
    unpack_both<type>(p, q, grid, w.first, w.second);
  } else {
    unpack<type>(p, grid, w.first);
  }
  if constexpr (!transposed<type>()) {
    words_side_by_side(w.first);
    if constexpr (pieces == 2) words_side_by_side(w.second);
  }
  w.scales = scales_of_both<type>(p, q);
  if constexpr (Is<type>::kHalves) halves_of_both<type>(p, q, w.first_halves, w.second_halves);
  if constexpr (Is<type>::kMinima) w.minima = both8(F::minima(p), pieces == 2 ? F::minima(q) : _mm256_setzero_ps());
}

template <DType type>
STRATA_SIMD __m512i sums_of_blocks(__m512i first, __m512i second) {
  return transposed<type>() ? block_sums_transposed_x(first, second) : block_sums(first, second);
}

// x: as many pieces in a row.
template <DType type, int pieces>
STRATA_SIMD __m512 add_pieces(const Unpacked<type>& w, const Int8Piece* x, __m512 sum) {
  const __m512i first = piece_sums<type>(w.first, x[0], w.first_halves);
  __m512i second = _mm512_setzero_si512();
  if constexpr (pieces == 2) second = piece_sums<type>(w.second, x[1], w.second_halves);
  __m512i whole = sums_of_blocks<type>(first, second);
  if constexpr (step<type>() == 2) {
    whole = _mm512_add_epi32(whole, whole);
    if constexpr (!Is<type>::kHalves && !Is<type>::kMinima) {
      const __m512i start = pieces == 2 ? load512(x[pieces - 1].start) : _mm512_setzero_si512();
      whole = _mm512_add_epi32(whole, sums_of_blocks<type>(load512(x[0].start), start));
    }
  }
  const auto of_both = [x](auto member) __attribute__((always_inline)) {
    return both8(_mm256_load_ps(x[0].*member),
                 pieces == 2 ? _mm256_load_ps(x[pieces - 1].*member) : _mm256_setzero_ps());
  };
  const __m512 scales = _mm512_mul_ps(w.scales, of_both(&Int8Piece::scale));
  sum = _mm512_fmadd_ps(_mm512_cvtepi32_ps(whole), scales, sum);
  if constexpr (Is<type>::kMinima) sum = _mm512_fnmadd_ps(w.minima, of_both(&Int8Piece::sum), sum);
  return sum;
}

// The last pieces of a weight row, of which the last one has `left` elements and need not be whole.
template <DType type, int pieces, int fixed>
STRATA_SIMD void few_last(const Int8Few& a, const uint8_t* w, int64_t piece, int64_t left, bool in_place,
                          F32x16* sums) {
  uint8_t copy[kPieceBytes<type>];
  const uint8_t* last = w + (pieces - 1) * kPieceBytes<type>;
  if (!in_place) last = last_piece<type>(last, left, copy);
  Unpacked<type> rest;
  unpack_pieces<type, pieces>(pieces == 2 ? w : last, last, a.grid, rest);
  rest.scales = _mm512_maskz_mov_ps(first_lanes(8 * (pieces - 1) + left / 32), rest.scales);
  const int64_t rows = fixed != 0 ? fixed : a.rows;
  for (int64_t r = 0; r < rows; ++r) sums[r].v = add_pieces<type, pieces>(rest, a.x[r] + piece, sums[r].v);
}

// Weight rows whose last piece can be read as if it were whole: what lies behind their end is the next rows.
template <DType type>
STRATA_SIMD int64_t columns_in_place(const Int8Few& a) {
  const int64_t row = a.in / Levels<type>::kBlock * Levels<type>::kBytes;
  const int64_t past = (a.in + kPiece - 1) / kPiece * kPieceBytes<type> - row;
  return past == 0 ? a.count : a.count - (past + a.weight_stride - 1) / a.weight_stride;
}

// Sums of one weight row with all rows of x; `fixed` rows if that is not 0.
template <DType type, int fixed>
STRATA_SIMD void few_column(const Int8Few& a, const uint8_t* w, bool in_place, F32x16* sums) {
  constexpr int64_t kBytes = kPieceBytes<type>;
  const int64_t rows = fixed != 0 ? fixed : a.rows;
  const int64_t pieces = (a.in + kPiece - 1) / kPiece, whole = a.in / kPiece;
  for (int64_t r = 0; r < rows; ++r) sums[r] = zero16();
  const Int8Piece* x0 = a.x[0];
  const void* grid = a.grid;
  constexpr bool kAlone = fixed == 1;  // nothing is stored in the loop, so that tables can stay in registers
  __m512 alone = _mm512_setzero_ps();
  int64_t p = 0;
  for (; p + 2 <= whole; p += 2, w += 2 * kBytes) {
#pragma GCC unroll 16
    for (int64_t line = 0; line < 2 * kBytes; line += 64)
      _mm_prefetch(reinterpret_cast<const char*>(w + kAhead + line), _MM_HINT_T0);
    Unpacked<type> two;
    unpack_pieces<type, 2>(w, w + kBytes, grid, two);
    if constexpr (kAlone)
      alone = add_pieces<type, 2>(two, x0 + p, alone);
    else
      for (int64_t r = 0; r < rows; ++r) sums[r].v = add_pieces<type, 2>(two, a.x[r] + p, sums[r].v);
  }
  if constexpr (kAlone) sums[0].v = alone;
  const int64_t left = a.in - (pieces - 1) * kPiece;
  if (p + 2 == pieces) few_last<type, 2, fixed>(a, w, p, left, in_place, sums);
  if (p + 1 == pieces) few_last<type, 1, fixed>(a, w, p, left, in_place, sums);
}

template <DType type, int fixed>
STRATA_SIMD void few_rows(const Int8Few& a) {
  const int64_t rows = fixed != 0 ? fixed : a.rows;
  const int64_t in_place = columns_in_place<type>(a);
  F32x16 sums[4][fixed != 0 ? fixed : kFewRows] = {};
  for (int64_t column = 0; column < a.count; column += 4) {
    const int64_t wide = a.count - column < 4 ? a.count - column : 4;
    for (int64_t c = 0; c < wide; ++c)
      few_column<type, fixed>(a, a.weights + (column + c) * a.weight_stride, column + c < in_place, sums[c]);
    for (int64_t r = 0; r < rows; ++r) {
      const __mmask8 present = static_cast<__mmask8>((1 << wide) - 1);
      __m128 product = _mm_mul_ps(sums4(sums[0][r], sums[1][r], sums[2][r], sums[3][r]), _mm_set1_ps(a.scale));
      if (a.bias != nullptr) product = _mm_add_ps(product, _mm_maskz_loadu_ps(present, a.bias + column));
      _mm_mask_storeu_ps(a.y[r] + column, present, product);
    }
  }
}

template <DType type>
void few(const Int8Few& a) {
  if constexpr (kNarrowType<type>)
    if (is_narrow(a)) return narrow_rows<type>(a, columns_in_place<type>(a));
  if (a.rows == 1) return few_rows<type, 1>(a);
  few_rows<type, 0>(a);
}

// Panels: sixteen weight rows side by side, block after block in the order in which lanes are summed.
struct alignas(64) PanelBlock {
  uint8_t levels[8][64];  // four elements of each weight row, eight times
  float scales[16];
  int32_t extra[2][16];  // scales of the halves, or minima as f32
};

// Lanes in the order of the tree: each sum joins the one before when both are whole.
constexpr int lane_of(int turn) { return turn % 2 * 8 + turn / 2 % 2 * 4 + turn / 4 % 2 * 2 + turn / 8 % 2; }
constexpr int turn_of(int lane) { return lane_of(lane); }
// Where the block of that piece lies: lanes below 8 have the pieces 0, 2, ..., the others 1, 3, ...
STRATA_SIMD int64_t panel_place(int64_t pieces, int64_t piece, int block) {
  const int turn = turn_of(static_cast<int>(piece % 2) * 8 + block);
  return turn / 2 * pieces + (turn % 2 != 0 ? (pieces + 1) / 2 : 0) + piece / 2;
}

// Sixteen rows of sixteen words become sixteen columns.
STRATA_SIMD void transpose16(__m512i (&r)[16]) {
  __m512i t[16];
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    const __m512i a = _mm512_unpacklo_epi32(r[i], r[i + 1]), b = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    const __m512i c = _mm512_unpacklo_epi32(r[i + 2], r[i + 3]), d = _mm512_unpackhi_epi32(r[i + 2], r[i + 3]);
    t[i] = _mm512_unpacklo_epi64(a, c);
    t[i + 1] = _mm512_unpackhi_epi64(a, c);
    t[i + 2] = _mm512_unpacklo_epi64(b, d);
    t[i + 3] = _mm512_unpackhi_epi64(b, d);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m512i a = _mm512_shuffle_i32x4(t[i], t[i + 4], 0x88), b = _mm512_shuffle_i32x4(t[i], t[i + 4], 0xdd);
    const __m512i c = _mm512_shuffle_i32x4(t[i + 8], t[i + 12], 0x88);
    const __m512i d = _mm512_shuffle_i32x4(t[i + 8], t[i + 12], 0xdd);
    r[i] = _mm512_shuffle_i32x4(a, c, 0x88);
    r[i + 4] = _mm512_shuffle_i32x4(b, d, 0x88);
    r[i + 8] = _mm512_shuffle_i32x4(a, c, 0xdd);
    r[i + 12] = _mm512_shuffle_i32x4(b, d, 0xdd);
  }
}

// Register j of the piece, of sixteen weight rows.
template <DType type>
STRATA_SIMD void pack_rows(__m512i (&rows)[16], int j, PanelBlock* const (&blocks)[8]) {
  transpose16(rows);
#pragma GCC unroll 16
  for (int k = 0; k < 16; ++k) {
    const __m512i levels = step<type>() == 2 ? _mm512_add_epi8(rows[k], rows[k]) : rows[k];
    _mm512_store_si512(transposed<type>() ? blocks[k / 2]->levels[k % 2 * 4 + j] : blocks[j + k / 8 * 4]->levels[k % 8],
                       levels);
  }
}

template <DType type, int j>
STRATA_SIMD void pack_levels(const uint8_t* const (&w)[16], const void* grid, PanelBlock* const (&blocks)[8]) {
  __m512i rows[16];
#pragma GCC unroll 16
  for (int c = 0; c < 16; ++c) rows[c] = Levels<type>::template levels<j>(w[c], grid);
  pack_rows<type>(rows, j, blocks);
}

template <DType type>
STRATA_SIMD void pack_piece(const uint8_t* const (&w)[16], const void* grid, PanelBlock* const (&blocks)[8]) {
  if constexpr (Is<type>::kLattice) {  // a row is unpacked whole
    __m512i rows[4][16];
    for (int c = 0; c < 16; c += 2) {
      __m512i first[4], second[4];
      unpack_both<type>(w[c], w[c + 1], grid, first, second);
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) {
        rows[j][c] = first[j];
        rows[j][c + 1] = second[j];
      }
    }
    for (int j = 0; j < 4; ++j) pack_rows<type>(rows[j], j, blocks);
  } else {
    pack_levels<type, 0>(w, grid, blocks);
    pack_levels<type, 1>(w, grid, blocks);
    pack_levels<type, 2>(w, grid, blocks);
    pack_levels<type, 3>(w, grid, blocks);
  }
}

template <DType type>
STRATA_SIMD void pack_scales(const uint8_t* const (&w)[16], PanelBlock* const (&blocks)[8]) {
  using F = Levels<type>;
  __m512i rows[16];
#pragma GCC unroll 16
  for (int c = 0; c < 16; ++c) {
    __m256 minima = _mm256_setzero_ps();
    if constexpr (Is<type>::kMinima) minima = F::minima(w[c]);
    rows[c] = _mm512_castps_si512(both8(F::scales(w[c]), minima));
  }
  transpose16(rows);
#pragma GCC unroll 8
  for (int b = 0; b < 8; ++b) {
    _mm512_store_si512(blocks[b]->scales, rows[b]);
    if constexpr (Is<type>::kMinima) _mm512_store_si512(blocks[b]->extra[0], rows[b + 8]);
  }
  if constexpr (Is<type>::kHalves) {
#pragma GCC unroll 16
    for (int c = 0; c < 16; c += 2) halves_of_both<type>(w[c], w[c + 1], rows[c], rows[c + 1]);
    transpose16(rows);
#pragma GCC unroll 16
    for (int h = 0; h < 16; ++h)
      _mm512_store_si512(blocks[h / 2]->extra[h % 2], rows[half_slot(h, transposed<type>())]);
  }
}

template <DType type>
void pack(const Int8Pack& a) {
  constexpr int64_t kBytes = kPieceBytes<type>;
  const int64_t pieces = (a.in + kPiece - 1) / kPiece;
  auto* panel = reinterpret_cast<PanelBlock*>(a.panel);
  uint8_t copies[16][kBytes];
  for (int64_t p = 0; p < pieces; ++p) {
    const int64_t left = a.in - p * kPiece;
    const uint8_t* w[16];
    for (int c = 0; c < 16; ++c) {
      const uint8_t* row = a.weights + (c < a.count ? c : a.count - 1) * a.weight_stride + p * kBytes;
      w[c] = last_piece<type>(row, left < kPiece ? left : kPiece, copies[c]);
    }
    PanelBlock* blocks[8];
    for (int b = 0; b < 8; ++b) blocks[b] = panel + panel_place(pieces, p, b);
    pack_piece<type>(w, a.grid, blocks);
    pack_scales<type>(w, blocks);
  }
}

STRATA_SIMD __m512i four_bytes(const int8_t* p) {
  int32_t word;
  __builtin_memcpy(&word, p, sizeof word);
  return _mm512_set1_epi32(word);
}

enum class Kind { Plain, Minima, Halves };

// One block of `rows` rows of x with `groups` panels.
template <Kind kind, bool transposed_x, int rows, int groups>
STRATA_SIMD void add_block(const PanelBlock* const* w, const Int8Piece* const* x, int64_t piece, int block,
                           __m512 (&sums)[rows][groups]) {
  __m512i whole[rows][groups];
  const auto place = [block](int k) __attribute__((always_inline)) {
    return transposed_x ? 64 * (k % 4) + 8 * block + 4 * (k / 4) : word_place(block, k);
  };
  const auto products = [&](int first, int last, const __m512i* start) __attribute__((always_inline)) {
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
      for (int g = 0; g < groups; ++g) whole[r][g] = start[r];
#pragma GCC unroll 8
    for (int k = first; k < last; ++k) {
      __m512i levels[groups];
#pragma GCC unroll 4
      for (int g = 0; g < groups; ++g) levels[g] = _mm512_load_si512(w[g]->levels[k]);
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) {
        const __m512i four = four_bytes(x[r][piece].q + place(k));
#pragma GCC unroll 4
        for (int g = 0; g < groups; ++g) whole[r][g] = _mm512_dpbusd_epi32(whole[r][g], levels[g], four);
      }
    }
  };
  __m512i start[rows];
  if constexpr (kind == Kind::Halves) {
    __m512i first[rows][groups];
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) start[r] = _mm512_set1_epi32(x[r][piece].start[half_slot(2 * block, transposed_x)]);
    products(0, 4, start);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
      for (int g = 0; g < groups; ++g) first[r][g] = _mm512_mullo_epi32(whole[r][g], _mm512_load_si512(w[g]->extra[0]));
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r)
      start[r] = _mm512_set1_epi32(x[r][piece].start[half_slot(2 * block + 1, transposed_x)]);
    products(4, 8, start);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
      for (int g = 0; g < groups; ++g)
        whole[r][g] = _mm512_add_epi32(first[r][g], _mm512_mullo_epi32(whole[r][g], _mm512_load_si512(w[g]->extra[1])));
  } else {
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r)
      start[r] = kind == Kind::Minima ? _mm512_setzero_si512() : _mm512_set1_epi32(x[r][piece].block_start[block]);
    products(0, 8, start);
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
    const __m512 scale = _mm512_set1_ps(x[r][piece].scale[block]);
#pragma GCC unroll 4
    for (int g = 0; g < groups; ++g) {
      const __m512 scales = _mm512_mul_ps(_mm512_load_ps(w[g]->scales), scale);
      sums[r][g] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(whole[r][g]), scales, sums[r][g]);
      if constexpr (kind == Kind::Minima)
        sums[r][g] = _mm512_fnmadd_ps(_mm512_castsi512_ps(_mm512_load_si512(w[g]->extra[0])),
                                      _mm512_set1_ps(x[r][piece].sum[block]), sums[r][g]);
    }
  }
}

template <int rows, int groups>
STRATA_SIMD void put_panel(const Int8Panel& a, int64_t row, int64_t group, const __m512 (&sums)[rows][groups]) {
  for (int g = 0; g < groups; ++g) {
    const int64_t column = (group + g) * 16, left = a.count - column;
    const __mmask16 present = left >= 16 ? static_cast<__mmask16>(0xffff) : first_lanes(left);
    for (int r = 0; r < rows; ++r) {
      __m512 product = _mm512_mul_ps(sums[r][g], _mm512_set1_ps(a.scale));
      if (a.bias != nullptr) product = _mm512_add_ps(product, _mm512_maskz_loadu_ps(present, a.bias + column));
      _mm512_mask_storeu_ps(a.y[row + r] + a.column + column, present, product);
    }
  }
}

template <Kind kind, bool transposed_x, int rows, int groups>
void panel_tile(const Int8Panel& a, int64_t row, int64_t group) {
  const int64_t pieces = (a.in + kPiece - 1) / kPiece;
  const PanelBlock* w[groups];
  for (int g = 0; g < groups; ++g) w[g] = reinterpret_cast<const PanelBlock*>(a.panel + (group + g) * a.group_bytes);
  const Int8Piece* x[rows];
  for (int r = 0; r < rows; ++r) {
    x[r] = a.x[row + r];
    for (int g = 0; g < groups; ++g)
      __builtin_prefetch(a.y[row + r] + a.column + (group + g) * 16, 1);  // to be written
  }
  __m512 waiting[4][rows][groups];  // sums of the tree that wait for their other half
  __m512 sums[rows][groups];
  for (int turn = 0; turn < 16; ++turn) {
    const int lane = lane_of(turn);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
      for (int g = 0; g < groups; ++g) sums[r][g] = _mm512_setzero_ps();
    for (int64_t p = lane / 8; p < pieces; p += 2) {
      add_block<kind, transposed_x, rows, groups>(w, x, p, lane % 8, sums);
      for (int g = 0; g < groups; ++g) ++w[g];
    }
    int level = 0;
    for (; (turn >> level & 1) != 0; ++level)
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
        for (int g = 0; g < groups; ++g) sums[r][g] = _mm512_add_ps(waiting[level][r][g], sums[r][g]);
    if (level < 4)
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
        for (int g = 0; g < groups; ++g) waiting[level][r][g] = sums[r][g];
  }
  put_panel<rows, groups>(a, row, group, sums);
}

// The weights that become the next panels are asked for while these are multiplied, in shares of the rows.
STRATA_SIMD void ask_ahead(const Int8Panel& a, int64_t row, int64_t rows) {
  const int64_t begin = a.ahead_bytes * row / a.rows / 64, end = a.ahead_bytes * (row + rows) / a.rows / 64;
  for (int64_t line = begin; line < end; ++line)
    _mm_prefetch(reinterpret_cast<const char*>(a.ahead + line * 64), _MM_HINT_T1);
}

template <Kind kind, bool transposed_x, int rows>
STRATA_SIMD void panel_rows(const Int8Panel& a, int64_t row) {
  ask_ahead(a, row, rows);
  int64_t group = 0;
  for (; group + kPanelGroups <= a.groups; group += kPanelGroups)
    panel_tile<kind, transposed_x, rows, kPanelGroups>(a, row, group);
  if (group < a.groups) panel_tile<kind, transposed_x, rows, 1>(a, row, group);
}

// A tile of x stays in the nearest cache while the panels pass.
template <Kind kind, bool transposed_x>
void panel_of(const Int8Panel& a) {
  constexpr int kTileRows = kind == Kind::Halves ? 5 : 6;  // what the registers hold, with sums of two halves
  int64_t row = 0;
  for (; row + kTileRows <= a.rows; row += kTileRows) panel_rows<kind, transposed_x, kTileRows>(a, row);
  for (; row + 4 <= a.rows; row += 4) panel_rows<kind, transposed_x, 4>(a, row);
  for (; row + 2 <= a.rows; row += 2) panel_rows<kind, transposed_x, 2>(a, row);
  if (row < a.rows) panel_rows<kind, transposed_x, 1>(a, row);
}

}  // namespace
}  // namespace strata
