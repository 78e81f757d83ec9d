#pragma once

#include "base/simd.h"
#include "ops/causal_conv/lanes.h"

namespace strata {
namespace {

// Taps from the oldest to the newest, fused.
void conv_row(const ConvRow& row) {
  const F32x16 one = broadcast16(1.0f);
  for (int64_t c = 0; c < row.count; c += 16) {
    const int64_t n = row.count - c < 16 ? row.count - c : 16;
    F32x16 sum = zero16();
    for (int64_t j = 0; j < row.width; ++j)
      sum = fma16(load16_first(row.taps + j * row.count + c, n), load16_first(row.x[j] + c, n), sum);
    store16_first(row.y + c, sum / (one + exp16(zero16() - sum)), n);
  }
}

}  // namespace
}  // namespace strata
