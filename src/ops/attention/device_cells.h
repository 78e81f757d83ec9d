// Internal to the kernels of attention: cells, slots, the softmax of a split.
#pragma once

#include "device/kernel_math.h"
#include "ops/attention/device_kernel.h"

namespace strata {

__device__ inline float minus_infinity() { return gpu::f32_of_bits(0xff800000u); }

__device__ inline const char* cell_at(const KvDevice& kv, int64_t cell, int64_t kv_head) {
  const int64_t head = kv_head * kv.head_bytes;
  if (kv.pages == nullptr) return kv.data + cell * kv.cell_bytes + head;
  const int64_t mask = (int64_t{1} << kv.page_shift) - 1;
  return static_cast<const char*>(kv.pages[cell >> kv.page_shift]) + (cell & mask) * kv.cell_bytes + head;
}

// Channel i of a head, exactly.
template <int kType>
__device__ inline float kv_value(const char* row, int i) {
  if constexpr (kType == 0) return reinterpret_cast<const float*>(row)[i];
  if constexpr (kType == 1) return gpu::f32_of_f16(reinterpret_cast<const uint16_t*>(row)[i]);
  if constexpr (kType == 2) return gpu::f32_of_bf16(reinterpret_cast<const uint16_t*>(row)[i]);
  const char* block = row + i / 32 * (kType == 3 ? 34 : 18);
  const float scale = gpu::f32_of_f16(*reinterpret_cast<const uint16_t*>(block));
  if constexpr (kType == 3) return scale * static_cast<float>(reinterpret_cast<const int8_t*>(block + 2)[i % 32]);
  const int byte = reinterpret_cast<const uint8_t*>(block + 2)[i % 16];
  return scale * static_cast<float>((i % 32 < 16 ? byte & 15 : byte >> 4) - 8);
}

// Eight channels from 8 · piece on; zeros from dim on.
template <int kType>
__device__ inline void kv_piece(const KvDevice& kv, const char* row, int piece, int dim, float (&out)[8]) {
  const int first = piece * 8;
  if (first + 8 > dim) {
    for (int i = 0; i < 8; ++i) out[i] = first + i < dim ? kv_value<kType>(row, first + i) : 0.0f;
  } else if (kv.aligned != 0 && kType == 0) {
    for (int half = 0; half < 2; ++half) {
      const gpu::Float4 four = gpu::load_float4(reinterpret_cast<const float*>(row) + first + 4 * half);
      for (int i = 0; i < 4; ++i) out[4 * half + i] = four.v[i];
    }
  } else if (kv.aligned != 0 && kType < 3) {
    const gpu::Bits16 bits = gpu::load16(row + first * 2);
    for (int i = 0; i < 8; ++i) {
      const auto half = static_cast<uint16_t>(bits.word[i / 2] >> 16 * (i % 2));
      out[i] = kType == 1 ? gpu::f32_of_f16(half) : gpu::f32_of_bf16(half);
    }
  } else {
    for (int i = 0; i < 8; ++i) out[i] = kv_value<kType>(row, first + i);
  }
}

// The slots of a block of threads, and the first cell, or entry of the list, of its split. The slots of a round are
// fewer than 2^31.
struct Tile {
  int kv_head, first, count, begin, split;
};

__device__ inline int quotient(int64_t n, int64_t unit) {
  return static_cast<int>(static_cast<uint32_t>(n) / static_cast<uint32_t>(unit));
}

// Blocks are [splits, kv heads, tiles], so that those which read the same cells run together. Lists differ: with them a
// tile has one row.
__device__ inline Tile tile_at(const AttentionKernel& a, int64_t x, int64_t split) {
  const int tiles = static_cast<int>(a.tiles), slots = static_cast<int>(a.slots);
  const int kv_head = quotient(x, tiles), tile = static_cast<int>(x) - kv_head * tiles;
  const int each = a.ids == nullptr ? static_cast<int>(a.rows) * a.group : a.group;
  const int per = quotient(each + slots - 1, slots), block = quotient(tile, per);
  const int first = block * each + (tile - block * per) * slots, left = (block + 1) * each - first;
  return {kv_head, first, left < slots ? left : slots, static_cast<int>(split) * kCellSplit, static_cast<int>(split)};
}
__device__ inline Tile tile_of(const AttentionKernel& a) { return tile_at(a, gpu::block_x(), gpu::block_y()); }

__device__ inline int64_t slot_row(const AttentionKernel& a, int slot) { return quotient(slot, a.group); }
__device__ inline int64_t slot_head(const AttentionKernel& a, const Tile& tile, int slot) {
  return tile.kv_head * a.group + slot - quotient(slot, a.group) * a.group;
}

__device__ inline int cells_seen(const AttentionKernel& a, const Tile& tile, int slot) {
  const int count = a.counts[slot_row(a, slot)];
  const int left = (count < a.width ? count : a.width) - tile.begin;
  return left < 0 ? 0 : (left < kCellSplit ? left : kCellSplit);
}

// How many cells of its split each of `slots` slots sees, into shared memory; the most of them.
__device__ inline int all_seen(const AttentionKernel& a, const Tile& tile, int slots, int* seen) {
  const int slot = gpu::thread();
  if (slot < slots) seen[slot] = slot < tile.count ? cells_seen(a, tile, tile.first + slot) : 0;
  gpu::barrier();
  int most = 0;
  for (int i = 0; i < slots; ++i) most = seen[i] > most ? seen[i] : most;
  return most;
}

__device__ inline int64_t cell_of(const AttentionKernel& a, const Tile& tile, int n) {
  const int at = tile.begin + n;
  return a.ids == nullptr ? at : a.ids[slot_row(a, tile.first) * a.id_row + at];
}

// Where the partial result of a slot and this split goes.
__device__ inline int64_t partial_at(const AttentionKernel& a, const Tile& tile, int slot) {
  const int64_t heads = int64_t{a.kv_heads} * a.group;
  return (slot_row(a, slot) * heads + slot_head(a, tile, slot)) * a.splits + tile.split;
}

// By a wave: scores of a slot become weights e^(s - m), cells from `seen` on 0; stores m and l of the split.
__device__ inline void weigh(const AttentionKernel& a, const Tile& tile, int slot, int seen, float* scores) {
  float score[kCellSplit / gpu::kWave], largest = minus_infinity();
  bool bad = false;
  for (int i = 0; i < kCellSplit / gpu::kWave; ++i) {
    const int n = i * gpu::kWave + gpu::lane();
    score[i] = n < seen ? scores[n] : minus_infinity();
    bad = bad || score[i] != score[i];
    largest = gpu::fmax_f32(score[i], largest);
  }
  largest = gpu::wave_max(largest);
  const bool none = largest == minus_infinity();
  float sum = 0;
  for (int i = 0; i < kCellSplit / gpu::kWave; ++i) {
    const int n = i * gpu::kWave + gpu::lane();
    const float weight = n < seen && (!none || score[i] != score[i]) ? gpu::exp_f32(score[i] - largest) : 0.0f;
    scores[n] = weight;
    sum += weight;
  }
  sum = gpu::wave_sum(sum);
  if (gpu::ballot(bad) != 0) largest = gpu::f32_of_bits(0x7fc00000u);
  if (gpu::lane() != 0) return;
  const int64_t at = partial_at(a, tile, slot);
  a.m[at] = largest;
  a.l[at] = sum;
}

}  // namespace strata
