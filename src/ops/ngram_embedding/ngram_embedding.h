// Hashed n-gram rows and their gate (PLE of qwen4exp). Contract: README.md in this folder.
#pragma once

#include <cstdint>
#include <vector>

#include "base/tensor.h"
#include "device/device.h"

namespace strata {

// Constants of one module, exactly as the file stores them.
struct NgramParams {
  int orders = 2;                      // N - 1: orders 2 .. N
  int heads = 8;                       // hash heads of each order
  int32_t eos = 0;                     // a context ends at it
  std::vector<uint64_t> multipliers;   // [N]
  std::vector<uint64_t> head_sizes;    // [orders · heads]: P_h
  std::vector<uint64_t> head_offsets;  // [orders · heads]: first row of each head in the table
};

struct NgramEmbeddingArgs {
  const NgramParams* params = nullptr;
  Tensor ids;      // i32 [rows]
  Tensor context;  // i32 [N - 1]: the tokens before the first row, oldest first; -1 before the start of the sequence
  Tensor table;    // any dtype [table_rows, width]
  Tensor y;        // f32 [rows, orders · heads, width]
};
void ngram_embedding(Queue& queue, const NgramEmbeddingArgs& args);

// The definition read off token by token, nothing carried from one to the next: out [rows, orders · heads, width].
void ngram_embedding_oracle(const NgramEmbeddingArgs& args, double* out);

// Rows of the table that each token reads: [rows, orders · heads].
void ngram_rows(const NgramParams& params, const Tensor& ids, const Tensor& context, int64_t* rows_out);

// s_i = key_i · query_i / sqrt(hidden);  y_i = sigmoid(sign(s_i) · sqrt(max(|s_i|, 1e-6))) · value
struct NgramGateArgs {
  Tensor key;    // f32 [rows, streams, hidden], normed
  Tensor query;  // f32 [rows, streams, hidden], normed
  Tensor value;  // f32 [rows, hidden]
  Tensor y;      // f32 [rows, streams, hidden]
};
void ngram_gate(Queue& queue, const NgramGateArgs& args);
void ngram_gate_oracle(const NgramGateArgs& args, double* out);  // float64 [rows, streams, hidden]
// Bound on |error| of every element (README.md, Error), in the oracle's order.
void ngram_gate_bound(const NgramGateArgs& args, double* out);

}  // namespace strata
