// Columns of a state in registers: eight lanes share a column, each with the keys of one eighth.
#pragma once

#include "device/kernel_math.h"

namespace strata::gpu {

constexpr int kShares = 8;  // lanes of a column

__device__ inline float sum_of_shares(float x) {
  x += shuffle_xor(x, 4);
  x += shuffle_xor(x, 2);
  return x + shuffle_xor(x, 1);
}

// The keys of a share, of a row that has zeros behind its keys. Adjacent lanes take adjacent groups of four.
template <int kKeys>
__device__ inline void load_share(const float* row, int share, float (&keys)[kKeys]) {
  STRATA_UNROLL
  for (int c = 0; c < kKeys / 4; ++c) {
    const Float4 four = load_float4(row + 4 * (kShares * c + share));
    STRATA_UNROLL
    for (int k = 0; k < 4; ++k) keys[4 * c + k] = four.v[k];
  }
}

// The sum of a share alone.
template <int kKeys>
__device__ inline float dot_keys(const float (&a)[kKeys], const float (&b)[kKeys]) {
  float sums[4] = {};
  STRATA_UNROLL
  for (int i = 0; i < kKeys; ++i) sums[i % 4] = fma_f32(a[i], b[i], sums[i % 4]);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}
template <int kKeys>
__device__ inline float dot_share(const float (&a)[kKeys], const float (&b)[kKeys]) {
  return sum_of_shares(dot_keys(a, b));
}

// kKeys of a column between the state, whose keys are `stride` apart, and registers; zeros of a column that is not
// there.
template <int kKeys>
__device__ inline void move_state(int64_t dk, int64_t stride, float* state, int share, bool load, float (&s)[kKeys],
                                  bool there = true) {
  dk = computed_again(dk), stride = computed_again(stride);  // of many conditions and addresses
  STRATA_UNROLL
  for (int i = 0; i < kKeys; ++i) {
    const int64_t key = 4 * (kShares * (i / 4) + share) + i % 4;
    if (load)
      s[i] = there && key < dk ? state[key * stride] : 0.0f;
    else if (there && key < dk)
      state[key * stride] = s[i];
  }
}

// The rows of a chunk into the state: weight[slot] · u[slot, column] by key.
template <int kKeys>
__device__ inline void fold_slots(const float* keys, const float* weight, float keep, const float* u, int slots,
                                  int share, int columns, float (&s)[kKeys]) {
  STRATA_UNROLL
  for (float& one : s) one = mul_f32(keep, one);
  for (int slot = 0; slot < slots; ++slot) {
    float key[kKeys];
    load_share(keys + slot * kShares * kKeys, share, key);
    const float w = mul_f32(weight[slot], u[slot * columns]);
    STRATA_UNROLL
    for (int i = 0; i < kKeys; ++i) s[i] = fma_f32(key[i], w, s[i]);
  }
}

}  // namespace strata::gpu
