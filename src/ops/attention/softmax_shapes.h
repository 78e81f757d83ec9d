// What the timed shapes of attention and sparse_attention share.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>

#include "evidence/bench.h"
#include "ops/attention/softmax_case.h"

namespace strata {

// q, k, v and out of one call. Random numbers for every cell would take seconds: rows repeat after a while, which no
// memory can tell.
template <class Args>
void fill_timed(CaseMemory& memory, Random& random, Args& args, const HeadShape& shape, int64_t rows, int64_t cells,
                DType kv) {
  args.q = memory.f32({rows, shape.heads, shape.dim}, random);
  args.k = memory.tensor(kv, {cells, shape.kv_heads, shape.dim});
  args.v = memory.tensor(kv, {cells, shape.kv_heads, shape.dim});
  const int64_t distinct = std::min<int64_t>(cells, 509);
  for (const Tensor& tensor : {args.k, args.v}) {
    fill_rows(tensor.slice(0, distinct), random, -1, 1);
    for (int64_t cell = distinct; cell < cells; ++cell)
      std::memcpy(tensor.row<char>(cell), tensor.row<char>(cell % distinct), static_cast<size_t>(tensor.stride(0)));
  }
  args.scale = 1 / std::sqrt(static_cast<float>(shape.dim));
  args.out = memory.tensor(DType::F32, {rows, shape.heads, shape.dim});
}

// Bytes of keys and values of that many cells.
inline double kv_bytes(const HeadShape& shape, double cells, DType kv) {
  return 2 * cells * static_cast<double>(bytes_of(kv, shape.dim)) * static_cast<double>(shape.kv_heads);
}

// Additions and multiplications that meet that many pairs of a row and a cell.
inline double attention_operations(const HeadShape& shape, double pairs) {
  return 4 * pairs * static_cast<double>(shape.heads * shape.dim);
}

}  // namespace strata
