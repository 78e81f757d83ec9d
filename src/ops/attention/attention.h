// Causal attention of a few query rows over all cached keys (GQA). Contract: README.md in this folder.
#pragma once

#include "base/tensor.h"
#include "device/device.h"

namespace strata {

struct AttentionArgs {
  Tensor q;     // f32 [rows, heads, dim], rows and heads may be strided
  Tensor k;     // f32 [cells, kv_heads, dim], cells and heads may be strided, as in v
  Tensor v;     // f32 [cells, kv_heads, dim]
  Tensor n_kv;  // i32 [rows]: row t attends to cells 0 .. n_kv[t] - 1; 0 gives a row of zeros
  float scale = 1;
  Tensor out;  // f32 [rows, heads, dim]; query head h reads kv head h / (heads / kv_heads)
};

void attention(Queue& queue, const AttentionArgs& args);

// float64 [rows, heads, dim]; lse [rows, heads] (natural log of the sum of exp of scaled scores) when not null.
void attention_oracle(const AttentionArgs& args, double* out, double* lse);

}  // namespace strata
