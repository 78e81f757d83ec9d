// Products of one row of x by matrix units, for speed of memory: the same order of sums, and so the same bits, as
// mma_tile.h. A block takes several tiles of 16 weight rows; its waves take the chunks of all of them in turn, each
// with copies of its own that run ahead, and meet once, at the end. Every column of a matrix instruction gets the one
// row.
#pragma once

#include "ops/mma_kernel.h"

namespace strata::gpu {

__device__ inline uint32_t address_of(const void* p) { return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(p)); }

// Bytes of a word as small whole numbers.
__device__ inline float byte_level(uint32_t bytes, int k) {
  return f32_of_bits(byte_permute(bytes, 0x4b000000u, 0x7440u + static_cast<uint32_t>(k))) - 8388608.0f;
}

// The scales of the first or second half of a chunk, as F::scale has them.
template <class F, int kCount>
__device__ inline void half_scales(Bytes chunk, int half, Scale (&scale)[kCount]) {
  if constexpr (F::kElements == 256 && F::kMin && F::kBytes >= 144) {  // Q4_K, Q5_K
    const Bits16 head = load16(chunk);
    const uint32_t *w = head.word, low = 0x0f0f0f0fu, six = 0x3f3f3f3fu, high = 0x30303030u;
    const uint32_t scales = half == 0 ? w[1] & six : (w[3] & low) | (w[1] >> 2 & high);
    const uint32_t minima = half == 0 ? w[2] & six : (w[3] >> 4 & low) | (w[2] >> 2 & high);
    const float d = f32_of_f16(static_cast<uint16_t>(w[0])), of_min = f32_of_f16(static_cast<uint16_t>(w[0] >> 16));
#pragma unroll
    for (int k = 0; k < kCount; ++k) scale[k] = {d * byte_level(scales, k), of_min * byte_level(minima, k)};
  } else {
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      const int element = (half * kCount + k) * F::kGroup;
      scale[k] = F::scale(chunk + element / F::kElements * F::kBytes, element % F::kElements / 16);
    }
  }
}

// A word at a multiple of 4 and two bytes more or less.
__device__ inline uint32_t load_even(Bytes p, int offset) {
  if (offset % 4 == 0) return load_u32<4>(p + offset);
  return byte_permute(load_u32<4>(p + offset - 2), load_u32<4>(p + offset + 2), 0x5432);
}
// level_pairs for elements 16 step + 4 j of a chunk that lies at a multiple of 16.
template <class F>
__device__ inline void placed_pairs(Bytes chunk, int step, int j, uint32_t centre, uint32_t (&pairs)[2]) {
  const int block = step / 2 * F::kBytes, half = step % 2;
  if constexpr (F::kElements == 32 && F::kBytes == 34)  // Q8_0
    pairs_of_signed(load_even(chunk + 4 * j, block + 2 + 16 * half), pairs);
  else if constexpr (F::kElements == 32 && F::kBytes == 18 && has_byte_levels<F>(0))  // Q4_0
    pairs_of_bytes(load_even(chunk + 4 * j, block + 2) >> 4 * half & 0x0f0f0f0fu, minus_pair(F::kMinus), pairs);
  else if constexpr (F::kElements == 32 && F::kBytes == 18)  // IQ4_NL
    pairs_of_signed(iq4_bytes(load_even(chunk + 4 * j, block + 2) >> 4 * half & 0x0f0f0f0fu), pairs);
  else
    level_pairs<F>(chunk, 4 * step + j, centre, pairs);
}

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
  const char* end;     // of the matrix
  int64_t eight_rows;  // bytes

  __device__ static uint32_t misplaced(uint32_t address) { return kPlaced ? 0 : address & 15u; }

  // Four lanes a row, `from` of row lane / 4; of `left` rows from there on those that are. Whole pieces of 16 bytes
  // around the chunk; nothing is read behind the matrix.
  __device__ void ask(const char* from, int left, int slot) const {
    char* to = shared + slot * kSlot + lane() / 4 * kStride + 16 * (lane() % 4);
#pragma unroll
    for (int side = 0; side < 2; ++side, from += eight_rows, to += 8 * kStride) {
      if (left <= 8 * side) break;
      const char* piece = from - misplaced(address_of(from)) + 16 * (lane() % 4);
      if (kPlaced || from + kRowBytes + 32 <= end) {
#pragma unroll
        for (int i = 0; i < kPieces; i += 4)
          if (i + 4 <= kPieces || lane() % 4 < kPieces - i) copy16_async(to + 16 * i, piece + 16 * i);
      } else {
#pragma unroll 1
        for (int at = 0; piece + at < end && at < 16 * kPieces - 16 * (lane() % 4); at += 64) {
          if (piece + at + 16 <= end)
            copy16_async(to + at, piece + at);
          else
            for (int b = at; piece + b < end; ++b) to[b] = piece[b];
        }
      }
    }
  }
  __device__ Bytes chunk_of(uint32_t address, int row, int slot) const {
    return reinterpret_cast<Bytes>(shared) + slot * kSlot + row * kStride + misplaced(address);
  }

  // By row and group: scales; with minima then the rests and the centres.
  __device__ uint32_t* under(int part, int row, int group) const {
    return reinterpret_cast<uint32_t*>(shared + kStages * kSlot) + (part * 16 + row) * kScaleStride + group;
  }
  __device__ void prepare(Bytes chunk, int row) const {
    constexpr int kShare = kGroups / 2;  // of a lane
    const int half = lane() / 16, first = half * kShare;
    Scale scale[kShare];
    half_scales<F>(chunk, half, scale);
    uint32_t word[F::kMin ? 3 : 1][kShare];
#pragma unroll
    for (int k = 0; k < kShare; ++k) {
      word[0][k] = bits_of_f32(scale[k].scale);
      if constexpr (F::kMin) {
        const Centred centred = centred_scale<F>(scale[k]);
        word[1][k] = bits_of_f32(centred.minus_rest), word[2][k] = centred.minus_pair;
      }
    }
#pragma unroll
    for (int part = 0; part < (F::kMin ? 3 : 1); ++part)
#pragma unroll
      for (int k = 0; k < kShare; k += 4)
        store16(under(part, row, first + k),
                {{word[part][k], word[part][k + 1], word[part][k + 2], word[part][k + 3]}});
  }
};

// Where x lies, split: [row][groups of 32][kOneWords], and the sums of the groups, [row][groups]. Of a group:
// [step][lane of four]{first part, second part}, then [lane of four]{third part of both steps}.
inline constexpr int kOneWords = kMmaOneWords;
struct OneRows {
  uint32_t* parts;
  float* sums;
  int groups;
};

// For a lane of four; every lane of the four comes, those of groups that are not there for nothing.
__device__ inline void split_group(const float* x, int64_t row, int group, int j, bool there, const OneRows& to) {
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
  if (!there) return;
  uint32_t pair[kParts][4];
  for (int p = 0; p < kParts; ++p)
    for (int half = 0; half < 2; ++half) {
      pair[p][2 * half] = high_halves(part[4 * half][p], part[4 * half + 2][p]);
      pair[p][2 * half + 1] = high_halves(part[4 * half + 1][p], part[4 * half + 3][p]);
    }
  const int64_t at = row * to.groups + group;
  uint32_t* words = to.parts + at * kOneWords + 4 * j;
  store16(words, {{pair[0][0], pair[0][1], pair[1][0], pair[1][1]}});
  store16(words + 16, {{pair[0][2], pair[0][3], pair[1][2], pair[1][3]}});
  store16(words + 32, {{pair[2][0], pair[2][1], pair[2][2], pair[2][3]}});
  if (j == 0) to.sums[at] = sum;
}

// The sums of a chunk for weight rows lane / 4 and + 8: of the one row of x, which every column of the matrix
// instructions gets, or of rows 2 (lane % 4) + {0, 1} with each. `parts` of the lane's own column and place.
template <class F, int kSums>
__device__ inline void multiply_one(const OneStage<F>& stage, const Bytes (&rows)[2], const uint32_t* parts,
                                    const float* const (&group_sums)[kSums], float (&sums)[2 * kSums]) {
  const int row = lane() / 4, j = lane() % 4;
  uint32_t under[F::kMin ? 3 : 1][2][4];  // of four scales
  float of_min[kSums][4];
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
#pragma unroll
        for (int i = 0; i < kSums; ++i) {
          const Float4 four = load_float4(group_sums[i] + group);
          for (int k = 0; k < 4; ++k) of_min[i][k] = four.v[k];
        }
      }
    }
    uint32_t a[4];
#pragma unroll
    for (int side = 0; side < 2; ++side) {
      uint32_t pairs[2];
      placed_pairs<F>(rows[side], step, j, F::kMin ? under[F::kMin ? 2 : 0][side][group % 4] : 0, pairs);
      a[side] = pairs[0], a[2 + side] = pairs[1];
    }
    const uint32_t* x = parts + step / 2 * kOneWords;
    const Bits16 high = load16(x + step % 2 * 16), low = load16(x + 32);
    const uint32_t b[kParts][2] = {{high.word[0], high.word[1]},
                                   {high.word[2], high.word[3]},
                                   {low.word[step % 2 * 2], low.word[step % 2 * 2 + 1]}};
    float part[4];
    mma_bf16_first(part, a, b[2]);
    mma_bf16(part, a, b[1]);
    mma_bf16(part, a, b[0]);
#pragma unroll
    for (int i = 0; i < 2 * kSums; ++i) {
      const int side = i / kSums;
      float& sum = sums[i];
      if constexpr (OneStage<F>::kScaled)
        sum = fma_f32(f32_of_bits(under[0][side][group % 4]), part[2 * side + i % kSums], sum);
      else
        sum += part[2 * side + i % kSums];
      if constexpr (F::kMin)
        if (step % 2 == 1) sum = fma_f32(f32_of_bits(under[1][side][group % 4]), of_min[i % kSums][group % 4], sum);
    }
  }
}

// A place in the work of a wave: of tiles and chunks one is the inner; the wave goes on by as many as there are waves.
// `at` moves along with it: an address, or as much of one as is needed.
template <class Address>
struct OneItem {
  int inner, outer;
  Address at;
};
struct OneWalk {
  int waves, inner_count;
  int64_t inner_bytes, outer_bytes;

  template <class Address>
  __device__ void enter(OneItem<Address>& item) const {
    for (; item.inner >= inner_count; item.inner -= inner_count) ++item.outer, item.at += outer_bytes;
  }
  template <class Address>
  __device__ void next(OneItem<Address>& item) const {
    item.inner += waves, item.at += inner_bytes;
    enter(item);
  }
};

// Tiles first, first + step, ... of 16 weight rows, `tiles` of them. kAlone: one row of x, which the block splits into
// its shared memory, chunk after chunk of a tile; else `count` rows that are split, tile after tile of a chunk, so that
// waves meet the same part of x. in: whole chunks. put(row of x, weight row, sum).
template <class F, bool kAlone, class Put>
__device__ inline void stream_rows(const char* weight, int64_t row_bytes, int64_t in, int64_t out, const float* alone,
                                   OneRows x, int count, int first, int step, int tiles, Put put) {
  using Stage = OneStage<F>;
  constexpr int kSums = kAlone ? 1 : 2, kOfChunk = kAlone ? 16 : 128;
  const int chunks = static_cast<int>(in / kChunk), groups = static_cast<int>(in / 32), waves = threads() / kWave;
  char* memory = shared_memory();
  if (kAlone) {
    x = {reinterpret_cast<uint32_t*>(memory), reinterpret_cast<float*>(memory + groups * kOneWords * 4), groups};
    memory += groups * (kOneWords + 1) * 4;
  }
  auto* sums = reinterpret_cast<float*>(memory);  // [tiles][chunks][kOfChunk]
  const Stage stage{memory + tiles * chunks * kOfChunk * 4 + wave_index() * Stage::kBytes,
                    weight + (out - 1) * row_bytes + chunks * Stage::kRowBytes, 8 * row_bytes};
  const int64_t tile_bytes = static_cast<int64_t>(16 * step) * row_bytes;
  const OneWalk walk = kAlone ? OneWalk{waves, chunks, waves * Stage::kRowBytes, tile_bytes - chunks * Stage::kRowBytes}
                              : OneWalk{waves, tiles, waves * tile_bytes, Stage::kRowBytes - tiles * tile_bytes};
  const int outer_count = kAlone ? tiles : chunks, row = lane() / 4;
  const char* start = weight + 16 * first * row_bytes + wave_index() * (kAlone ? Stage::kRowBytes : tile_bytes);
  OneItem<const char*> asked{wave_index(), 0, start + row * row_bytes};
  OneItem<uint32_t> item{wave_index(), 0, address_of(start)};
  walk.enter(asked);
  walk.enter(item);
  const int rows_left = static_cast<int>(out) - 16 * first - row;
  auto ask = [&](int slot) {
    if (asked.outer < outer_count)
      stage.ask(asked.at, rows_left - 16 * step * (kAlone ? asked.outer : asked.inner), slot);
    copy_group();
    walk.next(asked);
  };
  for (int slot = 0; slot + 1 < Stage::kStages; ++slot) ask(slot);
  begin_early();  // weights do not wait for what makes x
  if (kAlone) {
    for (int at = 0; at < 4 * groups; at += threads()) {
      const int i = at + thread();
      split_group(alone, 0, i / 4, i % 4, i < 4 * groups, x);
    }
    barrier();
  }
  auto last = [&](int i) { return kAlone ? 0 : (i < count ? i : count - 1); };  // behind the rows any will do
  const uint32_t* parts = x.parts + last(lane() / 4) * groups * kOneWords + 4 * (lane() % 4);
  const auto low_row = static_cast<uint32_t>(row_bytes);
  int slot = 0;
#pragma unroll 1
  for (; item.outer < outer_count; walk.next(item)) {
    ask(slot == 0 ? Stage::kStages - 1 : slot - 1);
    copy_wait<Stage::kStages - 1>();
    wave_barrier();
    auto chunk_of = [&](int r) { return stage.chunk_of(item.at + static_cast<uint32_t>(r) * low_row, r, slot); };
    if constexpr (Stage::kScaled) {
      stage.prepare(chunk_of(lane() % 16), lane() % 16);
      wave_barrier();
    }
    const Bytes rows[2] = {chunk_of(lane() / 4), chunk_of(lane() / 4 + 8)};
    const int chunk = kAlone ? item.inner : item.outer, tile = kAlone ? item.outer : item.inner;
    const float* group_sums[kSums];
    for (int i = 0; i < kSums; ++i) group_sums[i] = x.sums + last(2 * (lane() % 4) + i) * groups + chunk * 8;
    float of_chunk[2 * kSums] = {};
    multiply_one<F, kSums>(stage, rows, parts + chunk * 8 * kOneWords, group_sums, of_chunk);
    float* to = sums + (tile * chunks + chunk) * kOfChunk;
    if constexpr (kAlone) {
      if (lane() % 4 < 2) to[lane() / 4 + 8 * (lane() % 4)] = lane() % 4 == 0 ? of_chunk[0] : of_chunk[1];
    } else {
      store_float4(to + 4 * lane(), {{of_chunk[0], of_chunk[1], of_chunk[2], of_chunk[3]}});
    }
    if (++slot == Stage::kStages) slot = 0;
    wave_barrier();  // what is asked for next lies where others read last
  }
  barrier();
  for (int i = thread(); i < kOfChunk * tiles; i += threads()) {
    const int tile = i / kOfChunk, place = i % kOfChunk;
    const float* of_tile = sums + tile * chunks * kOfChunk + place;
    float sum = 0;
#pragma unroll 4
    for (int chunk = 0; chunk < chunks; ++chunk) sum += of_tile[chunk * kOfChunk];
    const int from = place / 4, part = place % 4;  // lane, and which of its four
    const int row_of_x = kAlone ? 0 : 2 * (from % 4) + part % 2;
    const int64_t column =
        static_cast<int64_t>(first + tile * step) * 16 + (kAlone ? place : 8 * (part / 2) + from / 4);
    if (row_of_x < count && column < out) put(row_of_x, column, sum);
  }
}
template <class F, class Put>
__device__ inline void one_row(const char* weight, int64_t row_bytes, int64_t in, int64_t out, const float* x,
                               int first, int step, int tiles, Put put) {
  stream_rows<F, true>(weight, row_bytes, in, out, x, {}, 1, first, step, tiles,
                       [&](int, int64_t column, float sum) { put(column, sum); });
}

}  // namespace strata::gpu
