// What attention and sparse_attention share: the softmax over a list of cells, cut into splits of a fixed size at fixed
// places of the list. Internal to the two operators; the mathematics is in README.md.
#pragma once

#include "base/tensor.h"
#include "device/device.h"
#include "ops/attention/attention.h"
#include "ops/attention/softmax_kernel_types.h"

namespace strata {

// The arguments of both operators: row t attends to its first counts[t] cells.
struct CellAttention {
  Tensor q, k, v;
  Tensor counts;  // i32 [rows]
  Tensor ids;     // i32 [rows, width], the cells of each row; empty: 0, 1, 2, ...
  float scale = 1;
  Tensor out, lse;
  RowPages k_pages, v_pages;

  int64_t rows() const { return q.extent(0); }
  int64_t heads() const { return q.extent(1); }
  int64_t dim() const { return q.extent(2); }
  int64_t kv_heads() const { return k.extent(1); }
  int64_t group() const { return heads() / kv_heads(); }
  int64_t count(int64_t row) const { return counts.as<int32_t>()[row]; }
  int64_t cell(int64_t row, int64_t n) const { return ids.empty() ? n : ids.row<const int32_t>(row)[n]; }
};

CellAttention cells_of(const AttentionArgs& args);

// Shapes and dtypes of everything but counts and ids: Error{Argument} naming `op` and the argument.
void check_cell_attention(const char* op, const CellAttention& args);

void cell_attention(Queue& queue, const CellAttention& args, const SoftmaxKernel& kernel);

void cell_attention_oracle(const CellAttention& args, double* out, double* lse);  // lse may be null
void cell_attention_bound(const CellAttention& args, double* out, double* lse);   // lse may be null

}  // namespace strata
