// Any type of cells and any head size. A block computes one split for up to eight slots of one kv head: scores, eight
// lanes to a cell; weights; the sum over values, a thread to a channel, cell after cell.
#include "ops/attention/device_cells.h"

using namespace strata;
using namespace strata::gpu;

namespace {

constexpr int kThreads = 128, kSlots = 8, kLanesOfCell = 8, kCellsOfWave = kWave / kLanesOfCell;

// Element 8 · piece + i of a slot's query lies in half i / 4: sixteen bytes of a lane next to those of its neighbours.
__device__ int query_at(int pieces, int slot, int piece, int half) { return ((slot * 2 + half) * pieces + piece) * 4; }

__device__ void load_queries(const AttentionKernel& a, const Tile& tile, int pieces, float* queries) {
  for (int i = thread(); i < kSlots * pieces * 8; i += kThreads) {
    const int slot = i / (pieces * 8), channel = i % (pieces * 8);
    const int at = tile.first + slot;
    const bool there = slot < tile.count && channel < a.dim;
    queries[query_at(pieces, slot, channel / 8, channel % 8 / 4) + channel % 4] =
        there ? a.q[slot_row(a, at) * a.q_row + slot_head(a, tile, at) * a.q_head + channel] : 0.0f;
  }
}

// A lane has eight channels of every 64 and two sums for each score; three exchanges add the lanes of a cell.
template <int kType>
__device__ void score_cells(const AttentionKernel& a, const Tile& tile, int pieces, int most, const float* queries,
                            float* scores) {
  const int part = lane() % kLanesOfCell;
  for (int first = wave_index() * kCellsOfWave; first < most; first += kThreads / kLanesOfCell) {
    const int n = first + lane() / kLanesOfCell;
    const char* key = cell_at(a.k, cell_of(a, tile, n < most ? n : most - 1), tile.kv_head);
    float sum[kSlots][2] = {};
    for (int piece = part; piece < pieces; piece += kLanesOfCell) {
      float x[8];
      kv_piece<kType>(a.k, key, piece, a.dim, x);
      for (int slot = 0; slot < kSlots; ++slot)
        for (int half = 0; half < 2; ++half) {
          const Float4 q = load_float4(queries + query_at(pieces, slot, piece, half));
          for (int i = 0; i < 4; ++i) sum[slot][half] = fma_f32(q.v[i], x[4 * half + i], sum[slot][half]);
        }
    }
    for (int slot = 0; slot < kSlots; ++slot) {
      float dot = sum[slot][0] + sum[slot][1];
      for (int step = 1; step < kLanesOfCell; step *= 2) dot += shuffle_xor(dot, step);
      if (part == slot && n < most) scores[slot * kCellSplit + n] = dot * a.scale;
    }
  }
}

template <int kType>
__device__ void sum_values(const AttentionKernel& a, const Tile& tile, const int* seen, int most,
                           const float* weights) {
  int least = most;  // cells that every slot sees
  for (int slot = 0; slot < tile.count; ++slot) least = seen[slot] < least ? seen[slot] : least;
  for (int channel = thread(); channel < a.dim; channel += kThreads) {
    float sum[kSlots] = {};
    int n = 0;
    for (; n + 4 <= least; n += 4) {
      float x[4];
      for (int i = 0; i < 4; ++i) x[i] = kv_value<kType>(cell_at(a.v, cell_of(a, tile, n + i), tile.kv_head), channel);
      for (int slot = 0; slot < kSlots; ++slot) {
        const Float4 weight = load_float4(weights + slot * kCellSplit + n);
        for (int i = 0; i < 4; ++i) sum[slot] = fma_f32(weight.v[i], x[i], sum[slot]);
      }
    }
    for (; n < most; ++n) {
      const float x = kv_value<kType>(cell_at(a.v, cell_of(a, tile, n), tile.kv_head), channel);
      for (int slot = 0; slot < kSlots; ++slot)
        if (n < seen[slot]) sum[slot] = fma_f32(weights[slot * kCellSplit + n], x, sum[slot]);
    }
    for (int slot = 0; slot < kSlots; ++slot)
      if (slot < tile.count && seen[slot] > 0)
        a.a[partial_at(a, tile, tile.first + slot) * a.dim + channel] = sum[slot];
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(128) attention_fma(const AttentionKernel a) {
  const int pieces = (a.dim + 7) / 8;
  auto* queries = reinterpret_cast<float*>(shared_memory());  // [kSlots, 8 · pieces]
  float* scores = queries + kSlots * pieces * 8;              // [kSlots, kCellSplit]
  auto* seen = reinterpret_cast<int*>(scores + kSlots * kCellSplit);
  const Tile tile = tile_of(a);
  const int most = all_seen(a, tile, kSlots, seen);
  if (most == 0) return;
  load_queries(a, tile, pieces, queries);
  barrier();
  switch (a.k.type) {
    case 0: score_cells<0>(a, tile, pieces, most, queries, scores); break;
    case 1: score_cells<1>(a, tile, pieces, most, queries, scores); break;
    case 2: score_cells<2>(a, tile, pieces, most, queries, scores); break;
    case 3: score_cells<3>(a, tile, pieces, most, queries, scores); break;
    default: score_cells<4>(a, tile, pieces, most, queries, scores); break;
  }
  barrier();
  for (int slot = wave_index(); slot < kSlots; slot += kThreads / kWave)
    if (slot < tile.count && seen[slot] > 0) weigh(a, tile, tile.first + slot, seen[slot], scores + slot * kCellSplit);
  barrier();
  switch (a.v.type) {
    case 0: sum_values<0>(a, tile, seen, most, scores); break;
    case 1: sum_values<1>(a, tile, seen, most, scores); break;
    case 2: sum_values<2>(a, tile, seen, most, scores); break;
    case 3: sum_values<3>(a, tile, seen, most, scores); break;
    default: sum_values<4>(a, tile, seen, most, scores); break;
  }
}
