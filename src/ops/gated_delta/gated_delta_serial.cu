// The recurrence on columns of a state in registers.
#include "ops/gated_delta/device_columns.h"
#include "ops/gated_delta/device_kernel.h"

using namespace strata;
using namespace strata::gpu;

namespace {

template <int kKeys>
__device__ inline void serial(const DeltaSerialKernel& a) {
  constexpr int64_t kWidth = kShares * kKeys;
  const int64_t head = block_x() / a.slices;
  const int64_t column = block_x() % a.slices * (threads() / kShares) + thread() / kShares;
  const int share = thread() % kShares;
  const bool inside = column < a.dv;
  const int64_t j = inside ? column : a.dv - 1;  // lanes beyond the end go along without a state and write nothing
  const int64_t key_head = a.tiled != 0 ? head % a.key_heads : head / (a.value_heads / a.key_heads);
  float* state = a.state + head * a.state_head + j;
  const float* v = a.v + head * a.v_head + j;
  const int64_t step = a.key_heads * kWidth;
  const float *q = a.q + key_head * kWidth, *k = a.k + key_head * kWidth;
  float s[kKeys], key[kKeys], query[kKeys];
  move_state(a.dk, a.state_key, state, share, true, s, inside);
  load_share(k, share, key);
  load_share(q, share, query);
  float value = v[0], decay = exp_f32(a.g[head]), beta = a.beta[head];
  for (int64_t t = 0; t < a.rows; ++t) {
    const int64_t next = t + 1 < a.rows ? t + 1 : t;
    float next_key[kKeys], next_query[kKeys];
    load_share(k + next * step, share, next_key);
    load_share(q + next * step, share, next_query);
    const float next_value = v[next * a.v_row];
    const float next_g = a.g[next * a.g_row + head], next_beta = a.beta[next * a.beta_row + head];
    if (t == a.stored && inside) move_state(a.dk, a.state_key, state, share, false, s);
    STRATA_UNROLL
    for (float& one : s) one = mul_f32(one, decay);
    const float delta = mul_f32(beta, value - dot_share(s, key));
    STRATA_UNROLL
    for (int i = 0; i < kKeys; ++i) s[i] = fma_f32(key[i], delta, s[i]);
    const float out = dot_share(s, query);
    if (inside && share == 0) a.out[t * a.out_row + head * a.out_head + j] = out;
    STRATA_UNROLL
    for (int i = 0; i < kKeys; ++i) key[i] = next_key[i], query[i] = next_query[i];
    value = next_value;
    decay = exp_f32(next_g);
    beta = next_beta;
  }
  if (a.stored >= a.rows && inside) move_state(a.dk, a.state_key, state, share, false, s);
}

}  // namespace

// A wave for each (row, key head).
extern "C" __global__ void gated_delta_normalise(const DeltaNormaliseKernel a) {
  const int64_t row = block_x() / a.heads, head = block_x() % a.heads;
  const float* q = a.q + row * a.q_row + head * a.q_head;
  const float* k = a.k + row * a.k_row + head * a.k_head;
  float q_sum = 0, k_sum = 0;
  for (int64_t i = lane(); i < a.dk; i += kWave) {
    q_sum = fma_f32(q[i], q[i], q_sum);
    k_sum = fma_f32(k[i], k[i], k_sum);
  }
  const float q_scale = div_f32(a.query_factor, sqrt_f32(wave_sum(q_sum) + 1e-6f));
  const float k_scale = div_f32(1.0f, sqrt_f32(wave_sum(k_sum) + 1e-6f));
  const int64_t out = block_x() * a.width;
  for (int64_t i = lane(); i < a.width; i += kWave) {
    a.q_out[out + i] = i < a.dk ? mul_f32(q[i], q_scale) : 0.0f;
    a.k_out[out + i] = i < a.dk ? mul_f32(k[i], k_scale) : 0.0f;
  }
}

extern "C" __global__ void __launch_bounds__(128) gated_delta_serial64(const DeltaSerialKernel a) { serial<8>(a); }
extern "C" __global__ void __launch_bounds__(128) gated_delta_serial128(const DeltaSerialKernel a) { serial<16>(a); }
extern "C" __global__ void __launch_bounds__(128) gated_delta_serial256(const DeltaSerialKernel a) { serial<32>(a); }

extern "C" __global__ void gated_delta_gates_rows(const DeltaGatesKernel a) {
  const int64_t item = block_x() * threads() + thread();
  if (item >= a.rows * a.heads) return;
  const int64_t row = item / a.heads, head = item % a.heads;
  const float alpha = add_f32(a.alpha[row * a.alpha_row + head * a.alpha_head], a.dt_bias[head]);
  a.g[row * a.g_row + head] = mul_f32(softplus_f32(alpha), a.a[head]);
  a.beta[row * a.beta_row + head] = sigmoid_f32(a.b[row * a.b_row + head * a.b_head]);
}
