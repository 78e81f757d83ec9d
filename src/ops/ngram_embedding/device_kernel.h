// Internal to ngram_embedding and ngram_gate: what their kernels get. Strides in elements unless said.
#pragma once

#include <cstdint>

namespace strata {

inline constexpr int kMaxNgramOrders = 7, kMaxNgramHeads = 64;  // N - 1, and hash heads of all orders

struct NgramEmbeddingKernel {
  const int32_t *ids, *context;
  const char* table;
  float* y;
  int64_t width;
  int64_t table_row;  // bytes
  int64_t y_row, y_head;
  int64_t blocks;  // of threads for each (row, head)
  uint64_t multipliers[kMaxNgramOrders + 1];
  uint64_t sizes[kMaxNgramHeads], offsets[kMaxNgramHeads];
  int32_t orders, heads, eos;  // heads of one order
  int32_t vector;
  uint32_t type;
};

struct NgramGateKernel {
  const float *key, *query, *value;
  float* y;
  int64_t streams, hidden;
  int64_t key_row, key_stream, query_row, query_stream, value_row, y_row, y_stream;
  float scale;
  int32_t vector;
};

}  // namespace strata
