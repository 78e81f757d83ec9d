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

// Keys or queries, L2-normalised: [rows, heads, dk] contiguous.
struct DeltaNormaliseKernel {
  const float *q, *k;
  float *q_out, *k_out;
  int64_t heads, dk;
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

}  // namespace strata
