// What the first passes of `wy-fma` and `wy-wmma` share: decays, and products with them.
#pragma once

#include "ops/gated_delta/device_chunk.h"
#include "ops/gated_delta/device_wy_kernel.h"

namespace strata::gpu {

inline constexpr int kPairs = kWyRows * kWyRows;

__device__ inline int wy_rows(const DeltaWyKernel& a, int64_t chunk) {
  const int64_t rest = a.rows - (a.first_chunk + chunk) * kWyRows;
  return rest < kWyRows ? static_cast<int>(rest) : kWyRows;
}

__device__ inline char* wy_record(const DeltaWyKernel& a, int64_t chunk, int64_t head) {
  return a.records + (chunk * a.value_heads + head) * a.record_bytes;
}
__device__ inline float* wy_products(char* record) { return reinterpret_cast<float*>(record); }
__device__ inline float* wy_table(char* record) { return wy_products(record) + 2 * kPairs; }
__device__ inline float* wy_corrections(char* record) { return wy_table(record) + DeltaWyTable::kSize; }

// Shared memory of the first pass.
struct WyMemory {
  float* products;  // [k·k or q·k, slot, row], without decays
  float* down;      // [keys or queries, row]: scales
  ChunkGates* gates;
  float* raw;

  __device__ explicit WyMemory(char* at) {
    products = reinterpret_cast<float*>(at);
    down = products + 2 * kPairs;
    gates = reinterpret_cast<ChunkGates*>(down + 2 * kWyRows);
    raw = reinterpret_cast<float*>(gates + kWyHeads);
  }
};

__device__ inline void store_table(const WyMemory& memory, const ChunkGates& gates, int hi, int slot, float beta,
                                   float* table) {
  using Table = DeltaWyTable;
  const bool there = slot < hi;
  const float start = there ? decay_since_start(gates, slot) : 0.0f;
  table[Table::kStartKey + slot] = mul_f32(start, memory.down[slot]);
  table[Table::kStartQuery + slot] = mul_f32(start, memory.down[kWyRows + slot]);
  table[Table::kFold + slot] = there ? mul_f32(decay_between(gates, slot, hi - 1), memory.down[slot]) : 0.0f;
  table[Table::kBeta + slot] = beta;
  table[Table::kKeep + slot] = decay_since_start(gates, hi - 1);
}

// By every thread of the block, which have made the products.
__device__ inline void make_decays(const DeltaWyKernel& a, const WyMemory& memory, int64_t chunk, int64_t key_head) {
  const int repeat = static_cast<int>(a.value_heads / a.key_heads), hi = wy_rows(a, chunk);
  const int64_t row0 = (a.first_chunk + chunk) * kWyRows;
  for (int item = thread(); item < repeat * kWyRows; item += threads()) {
    const int slot = item % kWyRows;
    memory.raw[item] = slot < hi ? a.g[(row0 + slot) * a.g_row + value_head_of(a, key_head, item / kWyRows)] : 0.0f;
  }
  barrier();
  if (thread() < repeat) sum_gates(memory.raw + thread() * kWyRows, hi, memory.gates[thread()]);
  barrier();
  for (int item = thread(); item < repeat * kWyRows; item += threads()) {
    const int64_t head = value_head_of(a, key_head, item / kWyRows);
    const int slot = item % kWyRows;
    const float beta = slot < hi ? a.beta[(row0 + slot) * a.beta_row + head] : 0.0f;
    store_table(memory, memory.gates[item / kWyRows], hi, slot, beta, wy_table(wy_record(a, chunk, head)));
  }
  for (int item = thread(); item < repeat * kPairs; item += threads()) {
    const int64_t head = value_head_of(a, key_head, item / kPairs);
    const int at = item % kPairs, slot = at / kWyRows, row = at % kWyRows;
    float* products = wy_products(wy_record(a, chunk, head));
    const bool there = slot <= row && row < hi;
    const float decay = there ? decay_between(memory.gates[item / kPairs], slot, row) : 0.0f;
    products[at] = there ? mul_f32(decay, memory.products[at]) : 0.0f;
    products[kPairs + at] = there ? mul_f32(decay, memory.products[kPairs + at]) : 0.0f;
  }
}

}  // namespace strata::gpu
