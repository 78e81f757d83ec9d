// What the kernels of the chunk form share.
#pragma once

#include "ops/gated_delta/device_chunk_kernel.h"
#include "ops/gated_delta/device_words.h"

namespace strata {
namespace {

using namespace strata::gpu;

__device__ inline void split_f16(float a, float b, uint32_t& high, uint32_t& low) {
  high = f16x2_of_f32(a, b);
  const float ra = a - f32_of_f16(static_cast<uint16_t>(high)), rb = b - f32_of_f16(static_cast<uint16_t>(high >> 16));
  low = f16x2_of_f32(mul_f32(ra, kLowUp), mul_f32(rb, kLowUp));
}
// Three bf16 words hold a whole f32.
__device__ inline void split_bf16(float a, float b, uint32_t& high, uint32_t& middle, uint32_t& low) {
  high = bf16x2_of_f32(a, b);
  const float ra = a - f32_of_bits(high << 16), rb = b - f32_of_bits(high & 0xffff0000u);
  middle = bf16x2_of_f32(ra, rb);
  low = bf16x2_of_f32(ra - f32_of_bits(middle << 16), rb - f32_of_bits(middle & 0xffff0000u));
}

// a · b of numbers in two f16 words, from nothing: b holds high, high, low, low.
__device__ inline void product_f16(float (&d)[4], const uint32_t (&a_high)[4], const uint32_t (&a_low)[4],
                                   const uint32_t (&b)[4]) {
  const uint32_t high[2] = {b[0], b[1]}, low[2] = {b[2], b[3]};
  float cross[4];
  mma_f16_first(cross, a_high, low);
  mma_f16(cross, a_low, high);
  mma_f16_first(d, a_high, high);
  STRATA_UNROLL
  for (int i = 0; i < 4; ++i) d[i] = fma_f32(cross[i], kLowDown, d[i]);
}
// The same of numbers in three bf16 words: the small products apart, so that they wait for each other less.
__device__ inline void product_bf16(float (&d)[4], const uint32_t (&a)[3][4], const uint32_t (&b)[3][2]) {
  float small[4];
  mma_bf16_first(small, a[1], b[1]);
  mma_bf16_first(d, a[0], b[1]);
  mma_bf16(small, a[0], b[2]);
  mma_bf16(d, a[1], b[0]);
  mma_bf16(small, a[2], b[0]);
  mma_bf16(d, a[0], b[0]);
  STRATA_UNROLL
  for (int i = 0; i < 4; ++i) d[i] = add_f32(small[i], d[i]);
}

// Where a slot lies among the 16 rows of its block, and the slot of a row: lane l has of a matrix product the rows 2 (l
// % 4) + {0, 1} and 8 more, which makes them the slots 4 (l % 4) + {0, 1} and {2, 3}.
__device__ inline int delta_row(int slot) { return slot / 2 % 2 * 8 + slot / 4 * 2 + slot % 2; }
__device__ inline int delta_slot(int row) { return row % 8 / 2 * 4 + row / 8 * 2 + row % 2; }

// 16-byte piece of a row of a plane.
template <int kKeys, class Byte>
__device__ inline Byte* piece(Byte* plane, int row, int index) {
  return plane + row * (kKeys * 2) + ((index ^ (row & 7)) << 4);
}

// Slots of new rows of a chunk: [begin, end).
struct NewSlots {
  int begin, end;
  bool fold;  // the chunk goes into the state
};
__device__ inline NewSlots new_slots(const DeltaChunkRows& at, int64_t chunk) {
  const int64_t first = 64 * chunk - at.slot, end = at.rows - first;
  const int stop = end < 64 ? static_cast<int>(end) : 64;
  return {first < 0 ? static_cast<int>(-first) : 0, stop, stop == 64 || at.fold_rest != 0};
}

__device__ inline int64_t value_head(const DeltaChunkRows& at, int64_t key_head, int64_t index) {
  return at.tiled != 0 ? key_head + index * at.key_heads : key_head * (at.value_heads / at.key_heads) + index;
}

}  // namespace
}  // namespace strata
