// Products of one row of x by matrix units, for speed of memory: the same order of sums, and so the same bits, as
// mma_tile.h. A block takes several tiles of 16 weight rows; its waves take the chunks of all of them in turn, each with
// copies of its own that run ahead, and meet once, at the end. Every column of a matrix instruction gets the one row.
#pragma once

#include "ops/mma_kernel.h"

namespace strata::gpu {

// What a wave has in shared memory: stages of a chunk of 16 weight rows, then what is under their scales.
template <class F>
struct OneStage {
  static constexpr int kRowBytes = kChunk / F::kElements * F::kBytes;
  static constexpr bool kScaled = F::kElements > 1, kPlaced = kRowBytes % 16 == 0;  // else rows begin anywhere
  static constexpr int kPieces = mma_one_pieces(F::kElements, F::kBytes);
  static constexpr int kStride = mma_one_stride(F::kElements, F::kBytes), kSlot = 16 * kStride;
  static constexpr int kStages = mma_one_stages(F::kElements, F::kBytes);
  static constexpr int kGroups = kChunk / F::kGroup, kScaleStride = kGroups + 4;  // words
  static constexpr int kBytes = mma_one_wave_bytes(F::kElements, F::kBytes, F::kGroup, F::kMin);

  char* shared;
  const char* weight;
  int64_t row_bytes, out;
  int chunks;

  __device__ const char* row_of(int64_t at, int row, int chunk) const {
    const int64_t left = out - at;
    return weight + (at + (row < left ? row : left - 1)) * row_bytes + chunk * kRowBytes;
  }
  __device__ static uint32_t misplaced(const char* p) {
    return kPlaced ? 0 : static_cast<uint32_t>(reinterpret_cast<uintptr_t>(p)) & 15u;
  }

  // Four lanes a row. Whole pieces of 16 bytes around the chunk: nothing is read behind the matrix.
  __device__ void ask(int64_t at, int chunk, int slot) const {
    const bool inside = kPlaced || at + 16 < out || chunk + 1 < chunks;
#pragma unroll
    for (int side = 0; side < 2; ++side) {
      const int row = 8 * side + lane() / 4;
      const char* from = row_of(at, row, chunk);
      const uint32_t before = misplaced(from);
      from += 16 * (lane() % 4) - static_cast<int>(before);
      char* to = shared + slot * kSlot + row * kStride + 16 * (lane() % 4);
      if (inside) {
#pragma unroll
        for (int piece = 0; piece < kPieces; piece += 4)
          if (piece + 4 <= kPieces || lane() % 4 < kPieces - piece) copy16_async(to + 16 * piece, from + 16 * piece);
      } else {
        const char* end = weight + (out - 1) * row_bytes + chunks * kRowBytes;
#pragma unroll 1
        for (int piece = lane() % 4; piece < kPieces; piece += 4, from += 64, to += 64) {
          if (from + 16 <= end)
            copy16_async(to, from);
          else
            for (int b = 0; from + b < end; ++b) to[b] = from[b];
        }
      }
    }
  }
  __device__ Bytes chunk_of(int64_t at, int row, int chunk, int slot) const {
    return reinterpret_cast<Bytes>(shared) + slot * kSlot + row * kStride + misplaced(row_of(at, row, chunk));
  }

  // By row and group: scales; with minima then the rests and the centres.
  __device__ uint32_t* under(int part, int row, int group) const {
    return reinterpret_cast<uint32_t*>(shared + kStages * kSlot) + (part * 16 + row) * kScaleStride + group;
  }
  __device__ void prepare(int64_t at, int chunk, int slot) const {
    constexpr int kShare = kGroups / 2;  // of a lane
    const int row = lane() % 16, first = lane() / 16 * kShare;
    const Bytes start = chunk_of(at, row, chunk, slot);
    uint32_t word[F::kMin ? 3 : 1][kShare];
#pragma unroll
    for (int k = 0; k < kShare; ++k) {
      const int element = (first + k) * F::kGroup;
      const Scale scale = F::scale(start + element / F::kElements * F::kBytes, element % F::kElements / 16);
      word[0][k] = bits_of_f32(scale.scale);
      if constexpr (F::kMin) {
        const Centred centred = centred_scale<F>(scale);
        word[1][k] = bits_of_f32(centred.minus_rest), word[2][k] = centred.minus_pair;
      }
    }
#pragma unroll
    for (int part = 0; part < (F::kMin ? 3 : 1); ++part)
#pragma unroll
      for (int k = 0; k < kShare; k += 4)
        store16(under(part, row, first + k), {{word[part][k], word[part][k + 1], word[part][k + 2], word[part][k + 3]}});
  }
};

// Split x in shared memory, by groups of 32: [step][lane of four]{first part, second part}, then [lane of four]{third
// part of both steps}: 48 words. Then the sums of the groups.
inline constexpr int kOneWords = kMmaOneWords;

__device__ inline void split_one(const float* x, int groups, uint32_t* parts, float* sums) {
  for (int first = 0; first < 4 * groups; first += threads()) {
    const int i = first + thread(), group = i / 4, j = i % 4;
    const bool there = group < groups;
    uint32_t part[8][kParts];
    float sum = 0;
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      const float value = there ? x[32 * group + 16 * (k / 4) + 4 * j + k % 4] : 0.0f;
      split3(value, part[k]);
      sum += value;
    }
    sum += shuffle_xor(sum, 1);
    sum += shuffle_xor(sum, 2);
    if (!there) continue;
    uint32_t pair[kParts][4];
    for (int p = 0; p < kParts; ++p)
      for (int half = 0; half < 2; ++half) {
        pair[p][2 * half] = high_halves(part[4 * half][p], part[4 * half + 2][p]);
        pair[p][2 * half + 1] = high_halves(part[4 * half + 1][p], part[4 * half + 3][p]);
      }
    uint32_t* to = parts + group * kOneWords + 4 * j;
    store16(to, {{pair[0][0], pair[0][1], pair[1][0], pair[1][1]}});
    store16(to + 16, {{pair[0][2], pair[0][3], pair[1][2], pair[1][3]}});
    store16(to + 32, {{pair[2][0], pair[2][1], pair[2][2], pair[2][3]}});
    if (j == 0) sums[group] = sum;
  }
}

// The sums of a chunk for weight rows lane / 4 and + 8.
template <class F>
__device__ inline void multiply_one(const OneStage<F>& stage, const Bytes (&rows)[2], const uint32_t* parts,
                                    const float* group_sums, float (&sums)[2]) {
  const int row = lane() / 4, j = lane() % 4;
  uint32_t under[F::kMin ? 3 : 1][2][4];  // of four scales
  float of_min[4];
#pragma unroll
  for (int step = 0; step < kChunk / 16; ++step) {
    const int group = 16 * step / F::kGroup;
    if (OneStage<F>::kScaled && 16 * step % (4 * F::kGroup) == 0) {
#pragma unroll
      for (int part = 0; part < (F::kMin ? 3 : 1); ++part)
#pragma unroll
        for (int side = 0; side < 2; ++side) {
          const Bits16 four = load16(stage.under(part, row + 8 * side, group));
          for (int k = 0; k < 4; ++k) under[part][side][k] = four.word[k];
        }
      if (F::kMin) {
        const Float4 four = load_float4(group_sums + group);
        for (int k = 0; k < 4; ++k) of_min[k] = four.v[k];
      }
    }
    uint32_t a[4];
#pragma unroll
    for (int side = 0; side < 2; ++side) {
      uint32_t pairs[2];
      level_pairs<F>(rows[side], 4 * step + j, F::kMin ? under[F::kMin ? 2 : 0][side][group % 4] : 0, pairs);
      a[side] = pairs[0], a[2 + side] = pairs[1];
    }
    const uint32_t* x = parts + step / 2 * kOneWords + 4 * j;
    const Bits16 high = load16(x + step % 2 * 16), low = load16(x + 32);
    const uint32_t b[kParts][2] = {{high.word[0], high.word[1]},
                                   {high.word[2], high.word[3]},
                                   {low.word[step % 2 * 2], low.word[step % 2 * 2 + 1]}};
    float part[4];
    mma_bf16_first(part, a, b[2]);
    mma_bf16(part, a, b[1]);
    mma_bf16(part, a, b[0]);
#pragma unroll
    for (int side = 0; side < 2; ++side) {
      float& sum = sums[side];
      if constexpr (OneStage<F>::kScaled)
        sum = fma_f32(f32_of_bits(under[0][side][group % 4]), part[2 * side], sum);
      else
        sum += part[2 * side];
      if constexpr (F::kMin)
        if (step % 2 == 1) sum = fma_f32(f32_of_bits(under[1][side][group % 4]), of_min[group % 4], sum);
    }
  }
}

// Tiles first, first + step, ... of 16 weight rows, `tiles` of them. x and in: whole chunks. put(row, sum).
template <class F, class Put>
__device__ inline void one_row(const char* weight, int64_t row_bytes, int64_t in, int64_t out, const float* x,
                               int64_t first, int64_t step, int tiles, Put put) {
  using Stage = OneStage<F>;
  const int chunks = static_cast<int>(in / kChunk), groups = static_cast<int>(in / 32), waves = threads() / kWave;
  auto* parts = reinterpret_cast<uint32_t*>(shared_memory());
  auto* group_sums = reinterpret_cast<float*>(parts + groups * kOneWords);
  float* sums = group_sums + groups;  // [tiles][chunks][16]
  const Stage stage{reinterpret_cast<char*>(sums + tiles * chunks * 16) + wave_index() * Stage::kBytes, weight,
                    row_bytes, out, chunks};
  struct Item {
    int tile, chunk;
  };
  auto next = [&](Item& item) {
    for (item.chunk += waves; item.chunk >= chunks; item.chunk -= chunks) ++item.tile;
  };
  auto at = [&](const Item& item) { return (first + item.tile * step) * 16; };
  Item asked{0, wave_index()};
  while (asked.chunk >= chunks) asked.chunk -= chunks, ++asked.tile;
  Item item = asked;
  auto ask = [&](int slot) {
    if (asked.tile < tiles) stage.ask(at(asked), asked.chunk, slot);
    copy_group();
    next(asked);
  };
  for (int slot = 0; slot + 1 < Stage::kStages; ++slot) ask(slot);
  split_one(x, groups, parts, group_sums);
  barrier();
  int slot = 0;
#pragma unroll 1
  for (; item.tile < tiles; next(item)) {
    ask(slot == 0 ? Stage::kStages - 1 : slot - 1);
    copy_wait<Stage::kStages - 1>();
    wave_barrier();
    if constexpr (Stage::kScaled) {
      stage.prepare(at(item), item.chunk, slot);
      wave_barrier();
    }
    const Bytes rows[2] = {stage.chunk_of(at(item), lane() / 4, item.chunk, slot),
                           stage.chunk_of(at(item), lane() / 4 + 8, item.chunk, slot)};
    float of_chunk[2] = {0, 0};
    multiply_one<F>(stage, rows, parts + item.chunk * 8 * kOneWords, group_sums + item.chunk * 8, of_chunk);
    if (lane() % 4 < 2) {
      const int row = lane() / 4 + 8 * (lane() % 4);
      sums[(item.tile * chunks + item.chunk) * 16 + row] = lane() % 4 == 0 ? of_chunk[0] : of_chunk[1];
    }
    if (++slot == Stage::kStages) slot = 0;
    wave_barrier();  // what is asked for next lies where others read last
  }
  barrier();
  for (int i = thread(); i < 16 * tiles; i += threads()) {
    const float* of_tile = sums + i / 16 * chunks * 16 + i % 16;
    float sum = 0;
#pragma unroll 4
    for (int chunk = 0; chunk < chunks; ++chunk) sum += of_tile[chunk * 16];
    const int64_t row = (first + i / 16 * step) * 16 + i % 16;
    if (row < out) put(row, sum);
  }
}

}  // namespace strata::gpu
