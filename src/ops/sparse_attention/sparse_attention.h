// Attention over selected cells only. Contract: README.md in this folder.
#pragma once

#include "base/tensor.h"
#include "device/device.h"

namespace strata {

struct SparseAttentionArgs {
  Tensor q;       // f32 [rows, heads, dim], rows and heads may be strided
  Tensor k;       // f32, f16, bf16, q8_0 or q4_0 [cells, kv_heads, dim]; cells and heads may be strided
  Tensor v;       // as k, with a type of its own
  Tensor ids;     // i32 [rows, width]: ascending cells of each row; entries from counts[t] on are not read
  Tensor counts;  // i32 [rows], 0 .. width; 0 gives a row of zeros
  float scale = 1;
  Tensor out;                     // f32 [rows, heads, dim]
  Tensor lse{};                   // f32 [rows, heads], optional: natural log of the sum of exp of the scores
  RowPages k_pages{}, v_pages{};  // of the cells, when k and v are not one array; pages of a power of two of cells
};

void sparse_attention(Queue& queue, const SparseAttentionArgs& args);

// float64 [rows, heads, dim]; lse [rows, heads] when not null.
void sparse_attention_oracle(const SparseAttentionArgs& args, double* out, double* lse);
// Bounds on |error| of every element of both (README.md, Error); lse may be null.
void sparse_attention_bound(const SparseAttentionArgs& args, double* out, double* lse);

}  // namespace strata
