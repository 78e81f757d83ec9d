// Index keys of complete blocks: mean, norm, rotate. Contract: README.md in this folder.
#pragma once

#include "base/tensor.h"
#include "device/device.h"
#include "ops/rope/rope.h"

namespace strata {

struct QsaPoolArgs {
  Tensor raw;         // f32 [rows, d]: raw index keys of positions first .. first + rows - 1, rows may be strided
  int64_t first = 0;  // position of the first row, cells 0 .. first - 1 having been given before
  Tensor tail;        // f32 [ratio, d], in and out: slot p % ratio holds the raw key of position p of the open block
  Tensor weight;      // f32 [d]: norm weight
  float eps = 1e-6f;
  const RopeFrequencies* rope = nullptr;
  Tensor pooled;  // f32 [blocks, d]: row b is written when position b·ratio + ratio - 1 is among the rows, no other
};

void qsa_pool(Queue& queue, const QsaPoolArgs& args);

// float64 keys of the blocks that this call completes, [count, d] from block first / ratio on; the tail as it was
// before.
void qsa_pool_oracle(const QsaPoolArgs& args, double* out);

}  // namespace strata
