// Attention over selected cells only. Contract: README.md in this folder.
#pragma once

#include "base/tensor.h"
#include "device/device.h"

namespace strata {

struct SparseAttentionArgs {
  Tensor q;       // f32 [rows, heads, dim], rows and heads may be strided
  Tensor k;       // f32 [cells, kv_heads, dim], cells and heads may be strided, as in v
  Tensor v;       // f32 [cells, kv_heads, dim]
  Tensor ids;     // i32 [rows, width]: ascending cells of each row; entries from counts[t] on are not read
  Tensor counts;  // i32 [rows], 0 .. width; 0 gives a row of zeros
  float scale = 1;
  Tensor out;  // f32 [rows, heads, dim]
};

void sparse_attention(Queue& queue, const SparseAttentionArgs& args);

void sparse_attention_oracle(const SparseAttentionArgs& args, double* out);  // float64 [rows, heads, dim]

}  // namespace strata
