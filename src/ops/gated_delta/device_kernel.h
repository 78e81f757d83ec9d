// Internal to gated_delta: what its kernels get. Strides in elements.
#pragma once

#include <cstdint>

namespace strata {

struct DeltaGatesKernel {
  const float *alpha, *b, *dt_bias, *a;
  float *g, *beta;
  int64_t rows, heads;
  int64_t alpha_row, alpha_head, b_row, b_head, g_row, beta_row;
};

// Normalised rows of keys and queries are kKeyWidths[i] wide, with zeros behind dk: a thread's share has a fixed size.
inline constexpr int64_t kKeyWidths[] = {64, 128, 256};

// Keys or queries, L2-normalised: [rows, heads, width] contiguous.
struct DeltaNormaliseKernel {
  const float *q, *k;
  float *q_out, *k_out;
  int64_t heads, dk, width;
  int64_t q_row, q_head, k_row, k_head;
  float query_factor;
};

struct DeltaSerialKernel {
  const float *q, *k;  // normalised
  const float *v, *g, *beta;
  float *state, *out;
  int64_t rows, stored, key_heads, value_heads, dk, dv;
  int64_t v_row, v_head, g_row, beta_row, state_head, state_key, out_row, out_head;
  int64_t slices;  // of columns, for each head
  int32_t tiled;
};

// The chunk form. Chunk c of a call holds its rows from 64 c - start on, start being the first row's slot.
struct DeltaChunkKernel {
  const float *q, *k, *v, *g, *beta;  // raw
  float *state, *ring_k, *ring_u, *ring_g, *out;
  int64_t rows, start, key_heads, value_heads, dk, dv, width;
  int64_t q_row, q_head, k_row, k_head, v_row, v_head, g_row, beta_row, state_head, state_key, out_row, out_head;
  int64_t ring_k_head, ring_k_slot, ring_u_head, ring_u_slot, ring_g_head;
  int64_t first_chunk, chunks;  // of this launch
  int64_t slices;               // of columns, for each head
  float query_factor;
  int32_t tiled;
  // What the launch before leaves, by chunk from first_chunk on.
  float *queries, *keys;  // [chunks, key_heads, 64, width]: normalised
  float *kk, *qk;         // [chunks, value_heads, 64, 64]: products with the decay from column to row
  float* from_state;      // [chunks, value_heads, 64]: decay since the chunk's start
  float* weight;          // [chunks, value_heads, 64]: decay to the chunk's end
};

}  // namespace strata
