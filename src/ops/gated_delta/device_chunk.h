// What the kernels of the chunk form share.
#pragma once

#include "device/kernel_math.h"
#include "ops/gated_delta/device_kernel.h"

namespace strata::gpu {

inline constexpr int kSlots = 64;

// Slots of a chunk: rows below lo are in the ring, rows from lo to hi are new.
struct ChunkRows {
  int64_t index, lo, hi, row0;  // row0: the row of slot 0

  __device__ ChunkRows(const DeltaChunkKernel& a, int64_t at)
      : index(at), lo(a.first_chunk + at == 0 ? a.start : 0), row0((a.first_chunk + at) * kSlots - a.start) {
    hi = a.rows - row0 < kSlots ? a.rows - row0 : kSlots;
  }
};

template <class Kernel>
__device__ inline int64_t key_head_of(const Kernel& a, int64_t head) {
  return a.tiled != 0 ? head % a.key_heads : head / (a.value_heads / a.key_heads);
}
template <class Kernel>
__device__ inline int64_t value_head_of(const Kernel& a, int64_t key_head, int64_t index) {
  return a.tiled != 0 ? index * a.key_heads + key_head : key_head * (a.value_heads / a.key_heads) + index;
}
// The ring keeps the last 64 rows of a call.
__device__ inline bool kept(const DeltaChunkKernel& a, int64_t row) { return row >= 0 && row >= a.rows - kSlots; }

// Log decays of the chunk of one head, summed from its start or from the last row that cleared the state.
struct ChunkGates {
  double prefix[kSlots];
  int cleared[kSlots];  // slot of that row, -1: none
};

__device__ inline float gate_of(const DeltaChunkKernel& a, const ChunkRows& rows, int64_t head, int64_t slot) {
  return slot < rows.lo ? a.ring_g[head * a.ring_g_head + slot] : a.g[(rows.row0 + slot) * a.g_row + head];
}

// By one thread. gates: [64] of the head.
__device__ inline void sum_gates(const float* gates, int64_t hi, ChunkGates& out) {
  double sum = 0;
  int cleared = -1;
  for (int s = 0; s < hi; ++s) {
    const bool clears = gates[s] < -87.33654f;  // e^g counts as 0, as in exp_f32
    if (clears) cleared = s;
    sum = clears ? 0 : sum + static_cast<double>(gates[s]);
    out.prefix[s] = sum;
    out.cleared[s] = cleared;
  }
}

// e^x in two f32 words of x, so that a large one does not cost the exponential its precision.
__device__ inline float exp_of_difference(double x) {
  const auto high = static_cast<float>(x), low = static_cast<float>(x - static_cast<double>(high));
  const float e = exp_f32(high);
  return fma_f32(e, low, e);
}
__device__ inline float decay_between(const ChunkGates& gates, int from, int to) {
  return from < gates.cleared[to] ? 0.0f : exp_of_difference(gates.prefix[to] - gates.prefix[from]);
}
__device__ inline float decay_since_start(const ChunkGates& gates, int to) {
  return gates.cleared[to] >= 0 ? 0.0f : exp_of_difference(gates.prefix[to]);
}

// The factor of a query and of a key, in every lane of a wave.
__device__ inline float scale_of(const float* x, int64_t dk, float factor) {
  float sum = 0;
  for (int64_t i = lane(); i < dk; i += kWave) sum = fma_f32(x[i], x[i], sum);
  return div_f32(factor, sqrt_f32(wave_sum(sum) + 1e-6f));
}

// Products of one key with another and with a query.
struct Pair {
  float kk, qk;
};
__device__ inline Pair products(const float* k, const float* q, const float* other, int64_t dk) {
  float kk[4] = {}, qk[4] = {};
  for (int64_t i = 0; i < dk; i += 4) {
    STRATA_UNROLL
    for (int c = 0; c < 4; ++c)
      if (i + c < dk) {
        kk[c] = fma_f32(k[i + c], other[i + c], kk[c]);
        qk[c] = fma_f32(q[i + c], other[i + c], qk[c]);
      }
  }
  return {(kk[0] + kk[1]) + (kk[2] + kk[3]), (qk[0] + qk[1]) + (qk[2] + qk[3])};
}

}  // namespace strata::gpu
