// only: cuda
// 16-bit keys and values on matrix units, with the accuracy of f32: queries and weights are three 16-bit parts each,
// high, middle and low, whose products with keys and values are exact. A block of four waves computes one split for up
// to sixteen slots of one kv head; README.md, Arms, says how and what it costs in accuracy.
//
// Keys and values go from memory into the registers of the lane that multiplies them, 16 bytes at a time: the order of
// channels within 32 (of cells within 32, for values) is free as long as both operands have the same.
#include "ops/attention/device_mma.h"

using namespace strata;
using namespace strata::gpu;
using namespace strata::attention_parts;

namespace {

constexpr int kThreads = 128, kWaves = 4;
constexpr int kPitch = kCellSplit + 8;  // of scores: rows of a tile fall into different banks

// Sixteen cells from `first` on.
template <int kDim, bool kF16>
__device__ void score_cells(const AttentionKernel& a, const Tile& tile, int first, int most, const char* operands,
                            const float* inverse, float* scores) {
  constexpr int kPairs = kDim / 32, kBatch = kPairs < 4 ? kPairs : 4;  // pieces of a cell that are loaded at a time
  const int column = lane() % 4, line = lane() / 4;
  const bool whole = first + 16 <= most;
  const char* from[2] = {};
  if (a.runs != 0) {
    from[0] = cell_at(a.k, tile.begin + first + line, tile.kv_head) + 16 * column;
    from[1] = from[0] + 8 * a.k.cell_bytes;
  } else {
    for (int t = 0; t < 2; ++t)
      if (first + 8 * t + line < most)
        from[t] = cell_at(a.k, cell_of(a, tile, first + 8 * t + line), tile.kv_head) + 16 * column;
  }
  float sums[2][4] = {}, waiting[3][2][4] = {};  // sums of 32, 64 and 128 channels whose neighbour is to come
  STRATA_UNROLL
  for (int batch = 0; batch < kPairs; batch += kBatch) {
    Bits16 keys[2][kBatch];
    STRATA_UNROLL
    for (int i = 0; i < 2 * kBatch; ++i) {
      Bits16& key = keys[i / kBatch][i % kBatch];
      if (!whole) key = {};
      if (whole || first + 8 * (i / kBatch) + line < most) key = load_piece(from[i / kBatch], 4 * (batch + i % kBatch));
    }
    STRATA_UNROLL
    for (int p = batch; p < batch + kBatch; ++p) {
      Left left[kParts];
      STRATA_UNROLL
      for (int part = 0; part < kParts; ++part) left[part] = load_left(operands, kDim, part, 4 * p + column);
      STRATA_UNROLL
      for (int t = 0; t < 2; ++t) {
        multiply_pair<kDim, kF16>(sums[t], left, keys[t][p - batch]);
        join_sums(sums[t], waiting, t, p + 1);
      }
    }
  }
  STRATA_UNROLL
  for (int t = 0; t < 2; ++t)
    for (int i = 0; i < 4; ++i) {
      const int slot = line + 8 * (i / 2), n = first + 8 * t + 2 * column + i % 2;
      if (slot >= tile.count) continue;
      float score = sums[t][i] * inverse[slot];
      if (score != score && n < most) score = plain_score<kF16>(a, tile, slot, n);
      scores[slot * kPitch + n] = score;
    }
}

template <int kDim, bool kF16>
__device__ void attend(const AttentionKernel& a) {
  constexpr int kChunks = kDim / 64, kShare = kCellSplit * kChunks / kWaves;  // cells of a wave's sums
  const int columns = kDim > kCellSplit ? kDim : kCellSplit;
  char* operands = shared_memory();
  auto* scores = reinterpret_cast<float*>(operands + kParts * kSlots * columns * 2);  // [kSlots, kPitch]
  float* inverse = scores + kSlots * kPitch;
  auto* seen = reinterpret_cast<int*>(inverse + kSlots);
  const Tile tile = tile_of(a);
  const int most = all_seen(a, tile, kSlots, seen);
  if (most == 0) return;
  load_queries<kDim, kF16, kThreads>(a, tile, operands, inverse);
  barrier();
  for (int first = wave_index() * (kCellSplit / kWaves); first < (wave_index() + 1) * (kCellSplit / kWaves);
       first += 16)
    if (first < most) score_cells<kDim, kF16>(a, tile, first, most, operands, inverse, scores);
  barrier();
  for (int line = wave_index(); line < kSlots / 2; line += kWaves)
    weigh_parts<kF16>(a, tile, line, seen, operands,
                      [&](int slot, int n) { return load_float4(scores + slot * kPitch + n); });
  barrier();
  const int chunk = wave_index() % kChunks, share = wave_index() / kChunks;
  const int begin = share * kShare, end = begin + kShare;
  float sums[8][4];
  sum_values<kF16, false>(a, tile, begin, end, most, chunk, operands, sums);
  if (gpu::ballot(!all_finite(sums)) != 0) {
    sum_values<kF16, true>(a, tile, begin, end, most, chunk, operands, sums);
    spread_bad<kF16>(a, tile, begin, end, chunk, seen, sums);
  }
  const int column = lane() % 4, line = lane() / 4;
  // Later shares of the cells go through shared memory to the waves of the first.
  if (kChunks < kWaves) {
    if (share > 0)
      for (int j = 0; j < 8; ++j)
        for (int i = 0; i < 4; ++i) scores[((wave_index() - kChunks) * 32 + j * 4 + i) * kWave + lane()] = sums[j][i];
    barrier();
    if (share > 0) return;
    for (int other = 0; other + kChunks < kWaves; other += kChunks)
      for (int j = 0; j < 8; ++j)
        for (int i = 0; i < 4; ++i) sums[j][i] += scores[((other + chunk) * 32 + j * 4 + i) * kWave + lane()];
  }
  STRATA_UNROLL
  for (int i = 0; i < 4; ++i) {
    const int slot = line + 8 * (i / 2);
    if (slot >= tile.count || seen[slot] == 0) continue;
    float* to = a.a + partial_at(a, tile, tile.first + slot) * kDim + chunk * 64 + 8 * (2 * column + i % 2);
    const float power = kF16 ? 1 / kWeightPower : 1.0f;
    STRATA_UNROLL
    for (int j = 0; j < 8; j += 4)
      store_float4(to + j,
                   {{sums[j][i] * power, sums[j + 1][i] * power, sums[j + 2][i] * power, sums[j + 3][i] * power}});
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(128, 3) attention_bf16_64(const AttentionKernel a) {
  attend<64, false>(a);
}
extern "C" __global__ void __launch_bounds__(128, 3) attention_bf16_128(const AttentionKernel a) {
  attend<128, false>(a);
}
extern "C" __global__ void __launch_bounds__(128, 3) attention_bf16_256(const AttentionKernel a) {
  attend<256, false>(a);
}
extern "C" __global__ void __launch_bounds__(128, 3) attention_f16_64(const AttentionKernel a) { attend<64, true>(a); }
extern "C" __global__ void __launch_bounds__(128, 3) attention_f16_128(const AttentionKernel a) {
  attend<128, true>(a);
}
extern "C" __global__ void __launch_bounds__(128, 3) attention_f16_256(const AttentionKernel a) {
  attend<256, true>(a);
}
