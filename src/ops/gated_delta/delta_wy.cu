// The chunk form in three passes, in f32: what rows of a chunk are to each other, for all chunks at once; corrections
// and states, chunk by chunk; outputs, for all chunks at once.
#include "ops/gated_delta/device_columns.h"
#include "ops/gated_delta/wy_device.h"

using namespace strata;
using namespace strata::gpu;

namespace {

using Table = DeltaWyTable;

constexpr int kTile = 32, kTilePitch = kWyRows + 4;  // keys of a tile of queries in shared memory

// Corrections of columns whose states lie in registers; the states go on by the chunk.
template <int kKeys>
__device__ inline void scan(const DeltaWyKernel& a) {
  constexpr int64_t kWidth = kShares * kKeys;
  const int64_t head = block_x() / a.slices, key_head = key_head_of(a, head);
  const int columns = threads() / kShares, share = thread() % kShares;
  const int64_t column = block_x() % a.slices * columns + thread() / kShares;
  const bool inside = column < a.dv;
  const int64_t j = inside ? column : a.dv - 1;  // lanes beyond the end go along without a state and write nothing
  float* state = a.state + head * a.state_head + j;
  auto* u = reinterpret_cast<float*>(shared_memory()) + thread() / kShares;  // [32, columns]
  float s[kKeys];
  move_state(a.dk, a.state_key, state, share, true, s, inside);
  for (int64_t c = 0; c < a.chunks; ++c) {
    const int64_t row0 = (a.first_chunk + c) * kWyRows;
    char* record = wy_record(a, c, head);
    const float* keys = reinterpret_cast<const float*>(a.factors) + (c * a.key_heads + key_head) * 2 * kWyRows * kWidth;
    const float *products = wy_products(record), *table = wy_table(record);
    float* corrections = wy_corrections(record) + j;
    const int hi = wy_rows(a, c);
    if (inside) move_state(a.dk, a.dv, reinterpret_cast<float*>(record + a.states_at) + j, share, false, s);
    for (int t = 0; t < hi; ++t) {
      float key[kKeys];
      load_share(keys + t * kWidth, share, key);
      float kv = mul_f32(table[Table::kStartKey + t], dot_keys(s, key));
      for (int slot = share; slot < t; slot += kShares)
        kv = fma_f32(products[slot * kWyRows + t], u[slot * columns], kv);
      const float value = a.v[(row0 + t) * a.v_row + head * a.v_head + j];
      const float delta = mul_f32(table[Table::kBeta + t], value - sum_of_shares(kv));
      if (share == 0) {
        u[t * columns] = delta;
        if (inside) corrections[t * a.dv] = delta;
      }
      wave_barrier();
    }
    fold_slots(keys, table + Table::kFold, table[Table::kKeep], u, hi, share, columns, s);
    wave_barrier();
  }
  if (inside) move_state(a.dk, a.state_key, state, share, false, s);
}

}  // namespace

// A block for each (chunk, key head).
extern "C" __global__ void __launch_bounds__(256) delta_wy_factors(const DeltaWyKernel a) {
  const int64_t key_head = block_x() % a.key_heads, chunk = block_x() / a.key_heads;
  const int64_t row0 = (a.first_chunk + chunk) * kWyRows;
  const int hi = wy_rows(a, chunk);
  const WyMemory memory(shared_memory());
  float* keys = reinterpret_cast<float*>(a.factors) + block_x() * 2 * kWyRows * a.width;
  float* queries = keys + kWyRows * a.width;
  for (int t = wave_index(); t < hi; t += threads() / kWave) {
    const float* q = a.q + (row0 + t) * a.q_row + key_head * a.q_head;
    const float* k = a.k + (row0 + t) * a.k_row + key_head * a.k_head;
    const float q_scale = scale_of(q, a.dk, a.query_factor), k_scale = scale_of(k, a.dk, 1);
    for (int64_t i = lane(); i < a.width; i += kWave) {
      queries[t * a.width + i] = i < a.dk ? mul_f32(q[i], q_scale) : 0.0f;
      keys[t * a.width + i] = i < a.dk ? mul_f32(k[i], k_scale) : 0.0f;
    }
  }
  for (int i = thread(); i < 2 * kWyRows; i += threads()) memory.down[i] = 1;
  barrier();
  for (int item = thread(); item < kPairs; item += threads()) {
    const int row = item / kWyRows, slot = item % kWyRows;
    if (slot > row || row >= hi) continue;
    const Pair pair = products(keys + row * a.width, queries + row * a.width, keys + slot * a.width, a.dk);
    memory.products[slot * kWyRows + row] = pair.kk;
    memory.products[kPairs + slot * kWyRows + row] = pair.qk;
  }
  make_decays(a, memory, chunk, key_head);
}

extern "C" __global__ void __launch_bounds__(128) delta_wy_scan64(const DeltaWyKernel a) { scan<8>(a); }
extern "C" __global__ void __launch_bounds__(128) delta_wy_scan128(const DeltaWyKernel a) { scan<16>(a); }
extern "C" __global__ void __launch_bounds__(128) delta_wy_scan256(const DeltaWyKernel a) { scan<32>(a); }

// A thread has a column of a (chunk, value head): terms of the state by key, the decay, then slots.
extern "C" __global__ void __launch_bounds__(128) delta_wy_outputs(const DeltaWyKernel a) {
  const int64_t parts = (a.dv + threads() - 1) / threads(), own = block_x() / parts;
  const int64_t head = own % a.value_heads, chunk = own / a.value_heads, key_head = key_head_of(a, head);
  const int64_t column = block_x() % parts * threads() + thread(), row0 = (a.first_chunk + chunk) * kWyRows;
  const bool inside = column < a.dv;
  const int64_t j = inside ? column : a.dv - 1;
  const int hi = wy_rows(a, chunk);
  auto* tile = reinterpret_cast<float*>(shared_memory());  // [key, row]
  float* products = tile + kTile * kTilePitch;             // [slot, row]
  const float* queries =
      reinterpret_cast<const float*>(a.factors) + ((chunk * a.key_heads + key_head) * 2 + 1) * kWyRows * a.width;
  char* record = wy_record(a, chunk, head);
  const float *state = reinterpret_cast<const float*>(record + a.states_at) + j,
              *start = wy_table(record) + Table::kStartQuery, *corrections = wy_corrections(record) + j;
  for (int item = thread(); item < kPairs; item += threads()) products[item] = wy_products(record)[kPairs + item];
  float sum[kWyRows] = {};
  for (int64_t first = 0; first < a.dk; first += kTile) {
    const int keys = a.dk - first < kTile ? static_cast<int>(a.dk - first) : kTile;
    barrier();
    for (int item = thread(); item < kTile * kWyRows; item += threads()) {
      const int row = item / kTile, key = item % kTile;
      tile[key * kTilePitch + row] = row < hi ? queries[row * a.width + first + key] : 0.0f;
    }
    barrier();
    for (int i = 0; i < keys; ++i) {
      const float s = state[(first + i) * a.dv];
      STRATA_UNROLL
      for (int four = 0; four < kWyRows / 4; ++four) {
        const Float4 query = load_float4(tile + i * kTilePitch + 4 * four);
        STRATA_UNROLL
        for (int r = 0; r < 4; ++r) sum[4 * four + r] = fma_f32(query.v[r], s, sum[4 * four + r]);
      }
    }
  }
  STRATA_UNROLL
  for (int r = 0; r < kWyRows; ++r) sum[r] = mul_f32(start[r], sum[r]);
  for (int slot = 0; slot < hi; ++slot) {
    const float u = corrections[slot * a.dv];
    STRATA_UNROLL
    for (int four = 0; four < kWyRows / 4; ++four) {
      const Float4 weight = load_float4(products + slot * kWyRows + 4 * four);
      STRATA_UNROLL
      for (int r = 0; r < 4; ++r) {
        float& one = sum[4 * four + r];
        one = 4 * four + r >= slot ? fma_f32(weight.v[r], u, one) : one;  // a later NaN does not reach it
      }
    }
  }
  STRATA_UNROLL
  for (int r = 0; r < kWyRows; ++r)
    if (inside && r < hi) a.out[(row0 + r) * a.out_row + head * a.out_head + j] = sum[r];
}
