// The attention of one row over a list of cells, in blocks of fixed size at fixed places: the order of every sum
// depends on the list alone. Shared by the arms of attention and sparse_attention.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/fmath.h"

namespace strata {

inline constexpr int64_t kSoftmaxBlock = 128;  // cells

// out[0..dim) = softmax(scale · q·k over cells) · v, cells count. cell(i) gives the index of the i-th cell.
// k and v point at the kv head of cell 0; the strides are in floats from one cell to the next.
template <class Cell>
void attend_row(const float* q, const float* k, const float* v, int64_t k_stride, int64_t v_stride, int64_t dim,
                int64_t count, float scale, Cell cell, float* out) {
  float weights[kSoftmaxBlock];
  float best = -INFINITY, total = 0;
  std::fill(out, out + dim, 0.0f);
  for (int64_t first = 0; first < count; first += kSoftmaxBlock) {
    const int64_t size = std::min(kSoftmaxBlock, count - first);
    float block_best = best;
    for (int64_t i = 0; i < size; ++i) {
      weights[i] = dot_f32(q, k + cell(first + i) * k_stride, dim) * scale;
      // A NaN score must reach the output, so it is not compared away.
      block_best = weights[i] > block_best || weights[i] != weights[i] ? weights[i] : block_best;
    }
    if (block_best == -INFINITY) continue;  // every cell so far has a score of -infinity: weight 0
    const float keep = exp_f32(best - block_best);
    for (int64_t i = 0; i < size; ++i) weights[i] = exp_f32(weights[i] - block_best);
    total *= keep;
    for (int64_t i = 0; i < size; ++i) total += weights[i];
    for (int64_t c = 0; c < dim; ++c) out[c] *= keep;
    for (int64_t i = 0; i < size; ++i) {
      const float* value = v + cell(first + i) * v_stride;
      const float weight = weights[i];
      for (int64_t c = 0; c < dim; ++c) out[c] += weight * value[c];
    }
    best = block_best;
  }
  if (total == 0) return;  // nothing to attend to: zeros
  const float inverse = 1.0f / total;
  for (int64_t c = 0; c < dim; ++c) out[c] *= inverse;
}

}  // namespace strata
