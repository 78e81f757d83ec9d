// The chunk form in f32, for any sizes: what rows of a chunk are to each other, then columns of the states.
#include "ops/gated_delta/device_chunk.h"
#include "ops/gated_delta/device_columns.h"

using namespace strata;
using namespace strata::gpu;

namespace {

// Normalised rows of the chunk; keys below lo are so in the ring. A wave for each slot.
__device__ inline void normalise_chunk(const DeltaChunkKernel& a, const ChunkRows& rows, int64_t key_head,
                                       float* queries, float* keys) {
  const int waves = threads() / kWave;
  for (int64_t s = wave_index(); s < rows.hi; s += waves) {
    if (s < rows.lo) {
      const float* from = a.ring_k + key_head * a.ring_k_head + s * a.ring_k_slot;
      for (int64_t i = lane(); i < a.width; i += kWave) keys[s * a.width + i] = i < a.dk ? from[i] : 0.0f;
      continue;
    }
    const float* q = a.q + (rows.row0 + s) * a.q_row + key_head * a.q_head;
    const float* k = a.k + (rows.row0 + s) * a.k_row + key_head * a.k_head;
    const float q_scale = scale_of(q, a.dk, a.query_factor), k_scale = scale_of(k, a.dk, 1);
    for (int64_t i = lane(); i < a.width; i += kWave) {
      queries[s * a.width + i] = i < a.dk ? mul_f32(q[i], q_scale) : 0.0f;
      keys[s * a.width + i] = i < a.dk ? mul_f32(k[i], k_scale) : 0.0f;
    }
  }
}

template <int kKeys>
__device__ inline void slice(const DeltaChunkKernel& a) {
  constexpr int64_t kWidth = kShares * kKeys;
  const int64_t head = block_x() / a.slices, key_head = key_head_of(a, head);
  const int columns = threads() / kShares, share = thread() % kShares;
  const int64_t column = block_x() % a.slices * columns + thread() / kShares;
  const bool inside = column < a.dv;
  const int64_t j = inside ? column : a.dv - 1;  // lanes beyond the end go along without a state and write nothing
  float* state = a.state + head * a.state_head + j;
  float* ring = a.ring_u + head * a.ring_u_head + j;
  auto* u = reinterpret_cast<float*>(shared_memory()) + thread() / kShares;  // [64, columns]
  float s[kKeys];
  move_state(a.dk, a.state_key, state, share, true, s, inside);
  bool changed = false;
  for (int64_t c = 0; c < a.chunks; ++c) {
    const ChunkRows rows(a, c);
    const int64_t own = (c * a.value_heads + head) * kSlots;
    const float* keys = a.keys + (c * a.key_heads + key_head) * kSlots * kWidth;
    const float* queries = a.queries + (c * a.key_heads + key_head) * kSlots * kWidth;
    wave_barrier();
    for (int64_t slot = share; slot < rows.lo; slot += kShares)
      u[slot * columns] = inside ? ring[slot * a.ring_u_slot] : 0.0f;
    wave_barrier();
    for (int64_t t = rows.lo; t < rows.hi; ++t) {
      const int64_t row = rows.row0 + t;
      float key[kKeys], query[kKeys];
      load_share(keys + t * kWidth, share, key);
      load_share(queries + t * kWidth, share, query);
      const float *kk = a.kk + (own + t) * kSlots, *qk = a.qk + (own + t) * kSlots, from = a.from_state[own + t];
      float kv = mul_f32(from, dot_keys(s, key)), out = mul_f32(from, dot_keys(s, query));
      for (int64_t slot = share; slot < t; slot += kShares) {
        const float one = u[slot * columns];
        kv = fma_f32(kk[slot], one, kv);
        out = fma_f32(qk[slot], one, out);
      }
      const float value = a.v[row * a.v_row + head * a.v_head + j], beta = a.beta[row * a.beta_row + head];
      const float delta = mul_f32(beta, value - sum_of_shares(kv));
      out = fma_f32(qk[t], delta, sum_of_shares(out));
      if (share == 0) {
        u[t * columns] = delta;
        if (inside) {
          a.out[row * a.out_row + head * a.out_head + j] = out;
          if (kept(a, row)) ring[t * a.ring_u_slot] = delta;
        }
      }
      wave_barrier();
    }
    if (rows.hi == kSlots) {
      fold_slots(keys, a.weight + own, a.from_state[own + kSlots - 1], u, kSlots, share, columns, s);
      changed = true;
    }
    const bool first_slice = block_x() % a.slices == 0;
    for (int64_t t = rows.lo; first_slice && t < rows.hi; ++t) {
      const int64_t row = rows.row0 + t;
      if (!kept(a, row)) continue;
      if (thread() == 0) a.ring_g[head * a.ring_g_head + t] = a.g[row * a.g_row + head];
      if (head == value_head_of(a, key_head, 0))
        for (int64_t i = thread(); i < a.dk; i += threads())
          a.ring_k[key_head * a.ring_k_head + t * a.ring_k_slot + i] = keys[t * kWidth + i];
    }
  }
  if (changed && inside) move_state(a.dk, a.state_key, state, share, false, s);
}

}  // namespace

// A block for each (chunk, key head). Shared memory: the gates of a head, and their sums.
extern "C" __global__ void gated_delta_chunk_prepare(const DeltaChunkKernel a) {
  const int64_t key_head = block_x() % a.key_heads;
  const ChunkRows rows(a, block_x() / a.key_heads);
  float* queries = a.queries + block_x() * kSlots * a.width;
  float* keys = a.keys + block_x() * kSlots * a.width;
  auto& gates = *reinterpret_cast<ChunkGates*>(shared_memory());
  auto* raw = reinterpret_cast<float*>(shared_memory() + sizeof(ChunkGates));
  normalise_chunk(a, rows, key_head, queries, keys);
  const int64_t repeat = a.value_heads / a.key_heads, count = rows.hi - rows.lo;
  for (int64_t index = 0; index < repeat; ++index) {
    const int64_t head = value_head_of(a, key_head, index), own = (rows.index * a.value_heads + head) * kSlots;
    for (int64_t s = thread(); s < rows.hi; s += threads()) raw[s] = gate_of(a, rows, head, s);
    barrier();
    if (thread() == 0) sum_gates(raw, rows.hi, gates);
    barrier();
    for (int s = thread(); s < rows.hi; s += threads()) {
      a.from_state[own + s] = decay_since_start(gates, s);
      if (rows.hi == kSlots) a.weight[own + s] = decay_between(gates, s, kSlots - 1);
    }
    for (int64_t item = thread(); item < count * kSlots; item += threads()) {
      const auto t = static_cast<int>(rows.lo + item / kSlots), s = static_cast<int>(item % kSlots);
      if (s > t) continue;
      const Pair pair = products(keys + t * a.width, queries + t * a.width, keys + s * a.width, a.dk);
      const float decay = decay_between(gates, s, t);
      a.kk[(own + t) * kSlots + s] = mul_f32(decay, pair.kk);
      a.qk[(own + t) * kSlots + s] = mul_f32(decay, pair.qk);
    }
  }
}

extern "C" __global__ void __launch_bounds__(128) gated_delta_chunk64(const DeltaChunkKernel a) { slice<8>(a); }
extern "C" __global__ void __launch_bounds__(128) gated_delta_chunk128(const DeltaChunkKernel a) { slice<16>(a); }
extern "C" __global__ void __launch_bounds__(128) gated_delta_chunk256(const DeltaChunkKernel a) { slice<32>(a); }
