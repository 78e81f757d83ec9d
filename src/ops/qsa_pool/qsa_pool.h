// Index keys of complete blocks: mean, norm, rotate. Contract: README.md in this folder.
#pragma once

#include "base/tensor.h"
#include "device/device.h"
#include "ops/rope/rope.h"

namespace strata {

struct QsaPoolArgs {
  Tensor raw;         // f32 [rows, d]: raw index keys of positions first .. first + rows - 1, rows may be strided
  int64_t first = 0;  // position of the first row, cells 0 .. first - 1 having been given before
  Tensor tail;        // f32 [ratio, d], in and out: slot s holds the raw key of the last given position p = s mod ratio
  Tensor weight;      // f32 [d]: norm weight
  float eps = 1e-6f;
  const RopeFrequencies* rope = nullptr;
  // f32, bf16 or f16 [blocks, d]: row b is written when position b·ratio + ratio - 1 is among the rows, no other. The
  // key is computed in f32 and rounded once, to nearest even.
  Tensor pooled;
  int64_t first_block = 0;  // the block of row 0 of pooled
};

void qsa_pool(Queue& queue, const QsaPoolArgs& args);

// float64 keys of the blocks that this call completes, before their rounding to the type of `pooled`: [count, d] from
// block first / ratio on; the tail as it was before.
void qsa_pool_oracle(const QsaPoolArgs& args, double* out);
void qsa_pool_bound(const QsaPoolArgs& args, double* out);  // of the oracle's elements, rounding included

}  // namespace strata
