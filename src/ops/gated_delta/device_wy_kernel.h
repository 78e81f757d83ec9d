// Internal to gated_delta: what the three passes of `wy-fma` and `wy-wmma` get. Strides in elements.
#pragma once

#include <cstdint>

namespace strata {

inline constexpr int kWyRows = 32;      // of a chunk
inline constexpr int kWyThreads = 256;  // of a block of the first pass
inline constexpr int kWyWaves = 4;      // of a block of `wy-wmma` behind it, as the hardware counts them
inline constexpr int kWyColumns = 16;   // of the state, for a wave of `wy-wmma`
inline constexpr int kWyPitch = 17;     // of a tile of them in shared memory
inline constexpr int kWyHeads = 16;     // value heads of a key head at most

// Offsets in the table of a chunk and value head, in floats: the decay of the state to a row, times the scale of its
// key or query; from a slot to the chunk's end, times the scale of its key; beta; the decay of the whole chunk.
struct DeltaWyTable {
  static constexpr int kStartKey = 0, kStartQuery = 32, kFold = 64, kBeta = 96, kKeep = 128, kSize = 160;
};

// The record of a chunk and value head begins so; behind it corrections [slot, dv] and, at states_at, the state before
// the chunk: for each slice of `wy-wmma`, or f32 [dk, dv].
struct DeltaWyRecord {
  float products[2][kWyRows][kWyRows];  // k·k and q·k [slot, row]: with the decay from slot to row, 0 above
  float table[DeltaWyTable::kSize];
};

// `wy-wmma`, of one chunk and key head, in bytes: planes of f16 words, numbers x · 2^e = high + low / 2048 with e of
// their row. Keys and queries by row, keys by key as well.
template <int kKeys>
struct DeltaWyPlanes {
  static constexpr int kPlane = kWyRows * kKeys * 2;
  static constexpr int kQueries = 2 * kPlane, kByKey = 4 * kPlane, kBytes = 6 * kPlane;
};
// Of one chunk, value head and slice of columns: sixteen keys of sixteen columns as operands, high and low, one after
// another, then the scales of the columns.
inline constexpr int kWyStateWord = 16 * 16 * 2;

struct DeltaWyKernel {
  const float *q, *k, *v, *g, *beta;  // raw
  float *state, *out;
  int64_t rows, key_heads, value_heads, dk, dv, width;
  int64_t q_row, q_head, k_row, k_head, v_row, v_head, g_row, beta_row, state_head, state_key, out_row, out_head;
  int64_t first_chunk, chunks;  // of this launch
  int64_t slices;               // of columns, for each head
  float query_factor;
  int32_t tiled;
  // What one pass leaves for the next ones, by chunk from first_chunk on.
  char* factors;  // [chunks, key_heads]: planes; or keys and queries in f32, [2, row, width]
  char* records;  // [chunks, value_heads]
  int64_t record_bytes, states_at;
};

}  // namespace strata
