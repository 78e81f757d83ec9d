// Internal to gated_delta: what the kernels of the chunk form get, and what one leaves for the other. Strides in
// elements.
#pragma once

#include <cstdint>

namespace strata {

// The kernel of states: columns of a value head in a block; value heads at most, each with two of the waves.
inline constexpr int kDeltaColumns = 16, kDeltaHeads = 3, kDeltaWaves = 8;

// Of one chunk and key head, in bytes. Numbers in two f16 words are x · 2^e = high + low / 2048 with e of their row, so
// that the largest of a row is from 1 to below 2. Rows lie in the order of delta_row() within their block of 16, in
// 16-byte pieces; piece p of row r lies at p xor (r mod 8).
template <int kKeys>
struct DeltaChunkLayout {
  static constexpr int kPlane = 64 * kKeys * 2;
  // k high, k low, q high, q low; then k·k and q·k of row blocks r > b in three bf16 words, as matrix units take them:
  // [which, pair r (r - 1) / 2 + b, half of the rows] of (high, middle) 16 bytes a lane and low 8 bytes a lane.
  static constexpr int kQueries = 2 * kPlane, kProducts = 4 * kPlane;
  static constexpr int kProduct = 32 * 24, kPair = 2 * kProduct, kProductBytes = 6 * kPair;
  static constexpr int kHeads = kProducts + 2 * kProductBytes;  // then for each value head:
  // decays to the rows; [block, slot, row] f32 of k·k within the blocks of 16 rows, decayed; a table; the same of q·k.
  static constexpr int kStarts = 2 * 64 * 4, kDiagonal = 4 * 256 * 4, kTable = kStarts + kDiagonal,
                       kReads = kTable + 512 * 4, kHead = kReads + kDiagonal;
  // What the wave that corrects gets of a head; and the wave that reads, to the head's end.
  static constexpr int kCorrecting = kReads - kStarts, kReading = kTable + 256 * 4, kReadingBytes = kHead - kReading;
  // Of a block's shared memory: planes of keys at a time; of a head: the state of the columns in two f16 words with its
  // scales; corrections, values, sums by keys and by queries.
  static constexpr int kKeyBuffers = kKeys <= 128 ? 2 : 1;
  static constexpr int kState = kDeltaColumns * (kKeys + 1) * 4, kRows = 64 * kDeltaColumns * 4;
  static constexpr int kFixed = (kKeyBuffers + 1) * kQueries + 2 * kProductBytes;
  static constexpr int kOfHead = kCorrecting + kReadingBytes + 2 * kStarts + kState + 4 * kRows;
};

// Offsets in floats.
struct DeltaChunkTable {
  // Of the decays to the rows: of the state, times 2^-e of the key or the query.
  static constexpr int kStartKey = 0, kStartQuery = 64;
  // Of the table: decay from a slot to the end of the chunk; beta; 2^-e of the keys; decay of the whole chunk; from a
  // slot to the end of its block; from the end of block b to a row: [b, row].
  static constexpr int kFold = 0, kBeta = 64, kKeyScale = 128, kKeep = 192, kBlockEnd = 256, kFromBlock = 320;
};

// Which rows a launch computes. Chunk n of the call holds its rows 64 n - slot .. 64 n - slot + 63.
struct DeltaChunkRows {
  int64_t rows, slot;   // of the call; slot of its first row
  int64_t first_chunk;  // of the launch
  int64_t chunks;       // of the launch
  int64_t key_heads, value_heads, dk, dv;
  int32_t tiled, fold_rest;  // fold_rest: the last chunk goes into the state though it is not full
};

struct DeltaFactorsKernel {
  DeltaChunkRows at;
  const float *q, *k, *g, *beta;
  const float *ring_k, *ring_g;  // read below the slot of the first row
  char* factors;                 // [chunks, key_heads] layouts
  float* last_keys;              // [key_heads, 64, dk]: normalised keys of the last 64 rows, by slot
  int64_t q_row, q_head, k_row, k_head, g_row, beta_row, ring_k_head, ring_k_slot, ring_g_head;
  float query_factor;
};

struct DeltaChunksKernel {
  DeltaChunkRows at;
  const char* factors;
  const float *v, *g, *last_keys;
  float *state, *out;
  float *ring_k, *ring_u, *ring_g;  // null: not kept
  int64_t v_row, v_head, g_row, state_head, state_key, out_row, out_head;
  int64_t ring_k_head, ring_k_slot, ring_u_head, ring_u_slot, ring_g_head;
  int64_t slices, groups;  // blocks: key heads by groups of value heads by slices of columns
};

}  // namespace strata
