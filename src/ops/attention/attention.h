// Causal attention of a few query rows over all cached keys (GQA). Contract: README.md in this folder.
#pragma once

#include "base/tensor.h"
#include "device/device.h"

namespace strata {

struct AttentionArgs {
  Tensor q;     // f32 [rows, heads, dim], rows and heads may be strided
  Tensor k;     // f32, f16, bf16, q8_0 or q4_0 [cells, kv_heads, dim]; cells and heads may be strided
  Tensor v;     // as k, with a type of its own
  Tensor n_kv;  // i32 [rows]: row t attends to cells 0 .. n_kv[t] - 1; 0 gives a row of zeros
  float scale = 1;
  Tensor out;                     // f32 [rows, heads, dim]; query head h reads kv head h / (heads / kv_heads)
  Tensor lse{};                   // f32 [rows, heads], optional: natural log of the sum of exp of the scores
  RowPages k_pages{}, v_pages{};  // of the cells, when k and v are not one array; pages of a power of two of cells
};

void attention(Queue& queue, const AttentionArgs& args);

// float64 [rows, heads, dim]; lse [rows, heads] when not null.
void attention_oracle(const AttentionArgs& args, double* out, double* lse);
// Bounds on |error| of every element of both (README.md, Error); lse may be null.
void attention_bound(const AttentionArgs& args, double* out, double* lse);

}  // namespace strata
