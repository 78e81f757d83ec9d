// What the vector kernels of this folder are given: plain pointers, strides in elements. One form each of AVX2 and
// AVX-512, the same bits in both.
#pragma once

#include <cstdint>

namespace strata {

// Columns of a state are independent: a slice of them is the unit of work. Narrow ones fit the first-level cache, where
// many rows meet them again and again; few rows stream the state from memory, which likes long runs.
inline constexpr int64_t kDeltaSlice = 64, kDeltaWideSlice = 128;
inline constexpr int64_t kDeltaManyRows = 16;  // narrow slices, copied side by side, from here on

// x / sqrt(sum x² + 1e-6) · factor
struct NormaliseRow {
  const float* x;
  int64_t n;
  float factor;
  float* out;
};

// Rows 0 .. rows - 1 of the recurrence on `count` columns of one head.
struct SerialSlice {
  int64_t rows, dk, count;
  float* state;  // [dk, count]
  int64_t state_stride;
  const float *q, *k;  // [rows, dk], normalised
  int64_t key_stride;
  const float* v;  // [rows, count]
  int64_t v_stride;
  const float* decay;  // [rows]: e^g
  int64_t decay_stride;
  const float* beta;  // [rows]
  int64_t beta_stride;
  float* out;  // [rows, count]
  int64_t out_stride;
};

struct SerialKernels {
  void (*normalise)(const NormaliseRow&);
  void (*exp)(const float* x, int64_t n, float* out);
  void (*slice)(const SerialSlice&);
};

// One row of the open chunk against the rows up to itself: products of one key head.
struct ChunkProducts {
  int64_t slot, dk;
  const float* q;  // [dk], normalised
  const float* k;  // [64, dk]: the ring, this row's key in it
  int64_t key_stride;
  float *kk, *qk;  // [64] out: k·k_s and q·k_s for s <= slot
};

// The same row for one value head: products times the decay from row s to this one.
struct ChunkCoefficients {
  int64_t slot;
  const double* prefix;  // [64]: sum of g since the chunk's start or the last row that cleared the state
  int64_t cleared;       // slot of that row, -1: none
  const float *kk, *qk;
  float *kk_decayed, *qk_decayed;  // [64] out
  float* from_state;               // out: the decay since the chunk's start
};

// New rows of the open chunk on `count` columns of one head.
struct ChunkSlice {
  int64_t first, rows, dk, count;  // slot of the first new row
  const float* state;              // [dk, count]
  int64_t state_stride;
  const float *q, *k;  // [rows, dk], normalised
  int64_t query_stride, key_stride;
  const float* v;  // [rows, count]
  int64_t v_stride;
  const float* beta;  // [rows]
  int64_t beta_stride;
  const float *kk, *qk, *from_state;  // coefficients of the new rows: [rows, 64] twice, [rows]
  float* u;                           // [64, count], in and out
  int64_t u_stride;
  float* out;  // [rows, count]
  int64_t out_stride;
};

// The state behind `rows` rows of the chunk.
struct ChunkFold {
  int64_t rows, dk, count;
  const double* prefix;
  int64_t cleared;
  const float* k;  // [rows, dk]
  int64_t key_stride;
  const float* u;  // [rows, count]
  int64_t u_stride;
  const float* from;  // [dk, count]
  int64_t from_stride;
  float* to;
  int64_t to_stride;
};

struct ChunkKernels {
  void (*normalise)(const NormaliseRow&);
  void (*products)(const ChunkProducts&);
  void (*coefficients)(const ChunkCoefficients&);
  void (*slice)(const ChunkSlice&);
  void (*fold)(const ChunkFold&);
};

const ChunkKernels& delta_chunk_portable();
const ChunkKernels& delta_chunk_avx2();
const ChunkKernels& delta_chunk_avx512();
const SerialKernels& delta_serial_avx2();
const SerialKernels& delta_serial_avx512();

}  // namespace strata
