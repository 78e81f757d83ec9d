// Dot products of weight rows with rows of x through matrix units, exact but for the sums. x is split into three bf16
// whose sum it is; the levels of a weight are exact in bf16. Sixteen elements of a row of x meet a weight's levels in
// three products (small parts first), whose f32 sum is scaled and added, in the order of the elements, to the sum of
// the chunk of 256 elements; the sums of chunks are added in their order. Nothing else is in the order, so that a row
// of x gives the same bits in any tile.
//
// Formats with minima: scale · level - min = scale · (level - c) - (min - scale · c), where c is the whole number next
// to min / scale within the range of the levels. Neither part is more than twice the weight: nothing cancels. The
// second meets the sum of the 32 elements of x.
#pragma once

#include "ops/mma_layout.h"
#include "ops/weights_kernel.h"

namespace strata::gpu {

inline constexpr int kChunk = kMmaChunk, kParts = 3;

struct alignas(8) Pair8 {
  uint32_t word[2];
};
__device__ inline Pair8 load8(const void* from) { return *static_cast<const Pair8*>(from); }
__device__ inline void store8(uint32_t* to, const Pair8& pair) { *reinterpret_cast<Pair8*>(to) = pair; }

// Where x lies, split: [groups of 32][part][half][row][16] bf16, rows padded with zeros to a multiple of 8; and the
// sums of 32 elements, [groups][row]. Fours of elements are in the order 0, 2, 1, 3.
struct SplitRows {
  uint32_t* parts;
  float* sums;
  int64_t padded;  // rows
};

__device__ inline uint32_t high_halves(uint32_t low, uint32_t high) { return byte_permute(low, high, 0x7632); }

// x = a + b + c exactly: eight leading bits, the next eight, the rest. What is not finite stays in a alone.
__device__ inline void split3(float x, uint32_t (&part)[kParts]) {
  const uint32_t bits = bits_of_f32(x);
  part[0] = bits & 0xffff0000u;
  if ((bits & 0x7f800000u) == 0x7f800000u) {
    part[0] |= (bits & 0x007fffffu) != 0 ? 0x00400000u : 0u;
    part[1] = part[2] = 0;
    return;
  }
  const float rest = x - f32_of_bits(part[0]);
  part[1] = bits_of_f32(rest) & 0xffff0000u;
  part[2] = bits_of_f32(rest - f32_of_bits(part[1]));
}

// One thread for each (group, row, lane of four); `x` null: a row of padding. Every lane of the four comes.
__device__ inline void split_rows(const float* x, int64_t group, int64_t row, int j, const SplitRows& to) {
  uint32_t part[8][kParts];
  float sum = 0;
  for (int i = 0; i < 8; ++i) {
    const float value = x == nullptr ? 0.0f : x[32 * group + 16 * (i / 4) + 4 * j + i % 4];
    split3(value, part[i]);
    sum += value;
  }
  for (int p = 0; p < kParts; ++p)
    for (int half = 0; half < 2; ++half) {
      const Pair8 pairs{{high_halves(part[4 * half][p], part[4 * half + 2][p]),
                         high_halves(part[4 * half + 1][p], part[4 * half + 3][p])}};
      store8(to.parts + (((group * kParts + p) * 2 + half) * to.padded + row) * 8 + 2 * j, pairs);
    }
  sum += shuffle_xor(sum, 1);
  sum += shuffle_xor(sum, 2);
  if (j == 0) to.sums[group * to.padded + row] = sum;
}

template <class F>
__device__ constexpr auto has_byte_levels(int) -> decltype(F::kMinus, bool{}) {
  return true;
}
template <class F>
__device__ constexpr bool has_byte_levels(long) {
  return false;
}

template <class F>
__device__ constexpr auto has_signed_levels(int) -> decltype(F::signed_bytes(nullptr, 0), bool{}) {
  return true;
}
template <class F>
__device__ constexpr bool has_signed_levels(long) {
  return false;
}

template <class F>
__device__ constexpr auto has_grid_levels(int) -> decltype(F::grid(nullptr, 0), bool{}) {
  return true;
}
template <class F>
__device__ constexpr bool has_grid_levels(long) {
  return false;
}

// 128 + c, taken away, in both halves of a pair: bf16 from 128 to 256 are the whole numbers.
__device__ constexpr uint32_t minus_pair(uint32_t c) { return (0xc300u + c) * 0x10001u; }

// A scale with its minimum about the centre.
struct Centred {
  float minus_rest;  // scale · c - min
  uint32_t minus_pair;
};
template <class F>
__device__ inline Centred centred_scale(const Scale& scale) {
  float centre = near_div_f32(scale.min, scale.scale);
  if (!(centre > 0)) centre = 0;  // and where it is NaN
  if (centre > F::kTop) centre = F::kTop;
  const float shifted = centre + 8388608.0f;  // to a whole number, its lowest bits
  return {fma_f32(scale.scale, shifted - 8388608.0f, -scale.min), minus_pair(bits_of_f32(shifted) & 127u)};
}

// Bytes 0, 2 and 1, 3 as pairs of bf16: each below 128, minus what `minus` says; and signed, as their low seven bits
// less their sign: bit 7 doubles 128.
__device__ inline void pairs_of_bytes(uint32_t bytes, uint32_t minus, uint32_t (&pairs)[2]) {
  constexpr uint32_t kOne = 0x3f803f80u;
  pairs[0] = fma_bf16x2(and_or(bytes, 0x007f007fu, 0x43004300u), kOne, minus);
  pairs[1] = fma_bf16x2(and_or(bytes >> 8, 0x007f007fu, 0x43004300u), kOne, minus);
}
__device__ inline void pairs_of_signed(uint32_t bytes, uint32_t (&pairs)[2]) {
  constexpr uint32_t kMinusOne = 0xbf80bf80u;
  const uint32_t odd = bytes >> 8;
  pairs[0] = fma_bf16x2(and_or(bytes, 0x00800080u, 0x43004300u), kMinusOne, and_or(bytes, 0x007f007fu, 0x43004300u));
  pairs[1] = fma_bf16x2(and_or(odd, 0x00800080u, 0x43004300u), kMinusOne, and_or(odd, 0x007f007fu, 0x43004300u));
}

// Levels of elements 4 i .. 4 i + 3 of a chunk as pairs (0, 2) and (1, 3) of bf16. Formats with minima: less the
// centre, whose minus_pair is given.
template <class F>
__device__ inline void level_pairs(Bytes chunk, int i, uint32_t centre, uint32_t (&pairs)[2]) {
  if constexpr (F::kElements == 1) {  // bf16 itself
    const uint32_t low = load_u32<2>(chunk + 8 * i), high = load_u32<2>(chunk + 8 * i + 4);
    pairs[0] = byte_permute(low, high, 0x5410);
    pairs[1] = byte_permute(low, high, 0x7632);
  } else {
    constexpr int kPerBlock = F::kElements / 4;
    const Bytes block = chunk + i / kPerBlock * F::kBytes;
    if constexpr (has_byte_levels<F>(0)) {
      constexpr uint32_t kConstant = minus_pair(F::kMinus);
      pairs_of_bytes(F::bytes(block, i % kPerBlock), F::kMin ? centre : kConstant, pairs);
    } else if constexpr (has_signed_levels<F>(0)) {
      pairs_of_signed(F::signed_bytes(block, i % kPerBlock), pairs);
    } else if constexpr (has_grid_levels<F>(0)) {
      pairs_of_bytes(F::grid(block, i % kPerBlock), minus_pair(0), pairs);
      const uint32_t signs = F::signs(block, i % kPerBlock);  // to the tops of both halves: 0 and 2, 1 and 3
      pairs[0] ^= signs * 0x20008000u & 0x80008000u;
      pairs[1] ^= signs * 0x10004000u & 0x80008000u;
    } else {
      static_assert(!F::kMin, "minima go with byte levels");
      float q[4];
      F::levels(block, i % kPerBlock, q);
      pairs[0] = high_halves(bits_of_f32(q[0]), bits_of_f32(q[2]));
      pairs[1] = high_halves(bits_of_f32(q[1]), bits_of_f32(q[3]));
    }
  }
}

// The weights of a wave: kTiles · 16 rows.
struct WeightRows {
  const char* first;     // of the wave
  const char* end;       // of the matrix: nothing is read behind
  int row_bytes, count;  // rows behind the count are the last
};

// Of a matrix [rows, in]: from row `at` on.
template <class F>
__device__ inline WeightRows weight_rows(const char* matrix, int64_t row_bytes, int64_t rows, int64_t in, int64_t at) {
  const int64_t left = rows - at;
  return {matrix + at * row_bytes, matrix + (rows - 1) * row_bytes + in / F::kElements * F::kBytes,
          static_cast<int>(row_bytes), static_cast<int>(left < 1024 ? left : 1024)};
}

// A chunk of weight rows on its way through shared memory, and what is under each of their scales.
template <class F, int kTiles, int kStages>
struct WeightStage {
  static constexpr int kRows = 16 * kTiles, kRowBytes = kChunk / F::kElements * F::kBytes;
  static constexpr bool kScaled = F::kElements > 1, kAligned = !kScaled || F::kBytes % 16 == 0;
  static constexpr int kPieces = mma_row_pieces(F::kElements, F::kBytes);
  static constexpr int kStride = mma_row_stride(F::kElements, F::kBytes);
  static constexpr int kGroup = F::kGroup, kGroups = kChunk / kGroup;
  static constexpr int kBytes = mma_stage_bytes(F::kElements, F::kBytes, F::kGroup, F::kMin, kRows, kStages);

  char* shared;  // of the wave
  WeightRows rows;

  __device__ const char* source(int row, int64_t chunk) const {
    return rows.first + chunk * kRowBytes + (row < rows.count ? row : rows.count - 1) * rows.row_bytes;
  }
  __device__ static int misplaced(const char* p) {
    return kAligned ? 0 : static_cast<int>(reinterpret_cast<uintptr_t>(p) % 16);
  }
  __device__ static int slot(int row, int64_t stage) {
    return (static_cast<int>(stage % kStages) * kRows + row) * kStride;
  }

  // Asks for `bytes` of every row of a chunk, as whole pieces of 16 bytes around them.
  __device__ void ask(int64_t chunk, int64_t stage, int bytes) const {
#pragma unroll 1
    for (int first = 0; first < kRows * kPieces; first += kWave) {
      const int i = first + lane(), row = i / kPieces, piece = i % kPieces;
      if (row >= kRows) break;
      const char* from = source(row, chunk);
      const int before = misplaced(from);
      if (16 * piece >= before + bytes) continue;
      const char* start = from - before + 16 * piece;
      char* to = shared + slot(row, stage) + 16 * piece;
      if (kAligned || start + 16 <= rows.end)
        copy16_async(to, start);
      else
        for (int b = 0; start + b < rows.end; ++b) to[b] = start[b];
    }
  }
  // Where a row of a chunk begins, from `shared`.
  __device__ int chunk_of(int row, int64_t chunk, int64_t stage) const {
    return slot(row, stage) + misplaced(source(row, chunk));
  }

  // Under each scale, by group and row: the scale; with minima the rest and the centre as well.
  __device__ char* under(int row, int group) const {
    return shared + kStages * kRows * kStride + (group * kRows + row) * (F::kMin ? 16 : 4);
  }
  __device__ void prepare(int64_t chunk, int64_t stage, int groups) const {
    constexpr int kRowLanes = kRows < kWave ? kRows : kWave, kShare = kGroups / (kWave / kRowLanes);
    for (int first = 0; first < kRows; first += kRowLanes) {
      const int row = first + lane() % kRowLanes, from = lane() / kRowLanes * kShare;
      const Bytes start = reinterpret_cast<Bytes>(shared) + chunk_of(row, chunk, stage);
#pragma unroll
      for (int k = 0; k < kShare; ++k)
        if (from + k < groups) prepare_one(start, row, from + k);
    }
  }
  __device__ void prepare_one(Bytes start, int row, int group) const {
    const int element = group * kGroup;
    const Scale scale = F::scale(start + element / F::kElements * F::kBytes, element % F::kElements / 16);
    if constexpr (F::kMin) {
      const Centred centred = centred_scale<F>(scale);
      const Bits16 bits{{bits_of_f32(scale.scale), bits_of_f32(centred.minus_rest), centred.minus_pair, 0}};
      store16(under(row, group), bits);
    } else {
      *reinterpret_cast<float*>(under(row, group)) = scale.scale;
    }
  }
};

// Which split rows a tile has, for a lane: as B it holds row lane / 4 of every eight, its sums are of rows
// 2 (lane % 4) + {0, 1}. Rows behind the tile are any others, or not read.
template <int kColumns>
struct TileRows {
  int own[kColumns], sums[kColumns][2];
  bool read;  // own[0] is in the tile

  // row_of(i): of the i-th of `count`.
  template <class RowOf>
  __device__ TileRows(int count, RowOf row_of) {
    const int row = lane() / 4, j = lane() % 4;
    read = row < count;
#pragma unroll
    for (int eight = 0; eight < kColumns; ++eight) {
      own[eight] = row_of(8 * eight + row);
      for (int i = 0; i < 2; ++i) sums[eight][i] = row_of(8 * eight + 2 * j + i);
    }
  }
};

// sums += the products of one group of 32 elements: weights of kTiles · 16 rows with the rows of a tile. Lane: weight
// rows lane / 4 and + 8 of sixteen.
template <class F, int kTiles, int kColumns, int kStages>
__device__ inline void multiply_group(const WeightStage<F, kTiles, kStages>& weights, const int (&rows)[kTiles][2],
                                      int in_chunk, int64_t group, const SplitRows& x,
                                      const TileRows<kColumns>& tile_rows, float (&sums)[kTiles][kColumns][4]) {
  const int row = lane() / 4, j = lane() % 4;
  const int part_words = static_cast<int>(x.padded) * 8;
  const uint32_t* parts = x.parts + group * kParts * 2 * x.padded * 8 + 2 * j;
#pragma unroll
  for (int step = 0; step < 2; ++step) {
    const int element = 32 * in_chunk + 16 * step, of_group = element / weights.kGroup;
    uint32_t a[kTiles][4];
    float scale[kTiles][2], minus_rest[kTiles][2];
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile)
#pragma unroll
      for (int side = 0; side < 2; ++side) {
        const char* under = weights.under(16 * tile + 8 * side + row, of_group);
        uint32_t pairs[2], centre = 0;
        scale[tile][side] = 1, minus_rest[tile][side] = 0;
        if constexpr (F::kMin) {
          const Bits16 bits = load16(under);
          scale[tile][side] = f32_of_bits(bits.word[0]);
          minus_rest[tile][side] = f32_of_bits(bits.word[1]);
          centre = bits.word[2];
        } else if constexpr (F::kElements > 1) {
          scale[tile][side] = *reinterpret_cast<const float*>(under);
        }
        level_pairs<F>(reinterpret_cast<Bytes>(weights.shared) + rows[tile][side], element / 4 + j, centre, pairs);
        a[tile][side] = pairs[0], a[tile][2 + side] = pairs[1];
      }
#pragma unroll
    for (int eight = 0; eight < kColumns; ++eight) {
      uint32_t b[kParts][2] = {};
      if (kColumns > 1 || tile_rows.read)  // what is padding need not be read
#pragma unroll
        for (int p = 0; p < kParts; ++p) {
          const Pair8 pair = load8(parts + (2 * p + step) * part_words + 8 * tile_rows.own[eight]);
          b[p][0] = pair.word[0], b[p][1] = pair.word[1];
        }
      float of_min[2] = {0, 0};
      if (F::kMin && step == 1) {
        for (int i = 0; i < 2; ++i) of_min[i] = x.sums[group * x.padded + tile_rows.sums[eight][i]];
      }
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        float part[4];
        mma_bf16_first(part, a[tile], b[2]);
        mma_bf16(part, a[tile], b[1]);
        mma_bf16(part, a[tile], b[0]);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          float& sum = sums[tile][eight][i];
          sum = weights.kScaled ? fma_f32(scale[tile][i / 2], part[i], sum) : sum + part[i];
          if (F::kMin && step == 1) sum = fma_f32(minus_rest[tile][i / 2], of_min[i % 2], sum);
        }
      }
    }
  }
}

// visit(chunk, sums) for the chunks first, first + step, ... of a wave's weights, in this order.
template <class F, int kTiles, int kColumns, int kStages, class Visit>
__device__ inline void multiply_chunks(const WeightStage<F, kTiles, kStages>& weights, int64_t in, int64_t first,
                                       int64_t step, const SplitRows& x, const TileRows<kColumns>& tile_rows,
                                       Visit visit) {
  constexpr int kElements = F::kElements == 1 ? 2 : F::kElements;  // whole words
  auto elements = [&](int64_t chunk) {
    const int64_t left = in - chunk * kChunk;
    return static_cast<int>(left < kChunk ? left : kChunk);
  };
  auto ask = [&](int64_t chunk, int64_t stage) {
    if (chunk * kChunk < in)
      weights.ask(chunk, stage, elements(chunk) / kElements * (kElements == F::kElements ? F::kBytes : 2 * F::kBytes));
    copy_group();
  };
  for (int64_t s = 0; s + 1 < kStages; ++s) ask(first + s * step, s);
  int64_t stage = 0;
  for (int64_t chunk = first; chunk * kChunk < in; chunk += step, ++stage) {
    wave_barrier();  // what is asked for next lies where others read last
    ask(chunk + (kStages - 1) * step, stage + kStages - 1);
    copy_wait<kStages - 1>();
    wave_barrier();
    const int groups = elements(chunk) / 32;
    if constexpr (F::kElements > 1) {
      weights.prepare(chunk, stage, elements(chunk) / weights.kGroup);
      wave_barrier();
    }
    int rows[kTiles][2];
    for (int tile = 0; tile < kTiles; ++tile)
      for (int side = 0; side < 2; ++side)
        rows[tile][side] = weights.chunk_of(16 * tile + 8 * side + lane() / 4, chunk, stage);
    float sums[kTiles][kColumns][4] = {};
    if (kTiles * kColumns <= 2 && groups == 8) {
#pragma unroll
      for (int g = 0; g < 8; ++g)
        multiply_group<F, kTiles, kColumns, kStages>(weights, rows, g, chunk * 8 + g, x, tile_rows, sums);
    } else {
#pragma unroll 1
      for (int g = 0; g < groups; ++g)
        multiply_group<F, kTiles, kColumns, kStages>(weights, rows, g, chunk * 8 + g, x, tile_rows, sums);
    }
    visit(chunk, sums);
  }
}

}  // namespace strata::gpu
