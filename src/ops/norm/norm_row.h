// One group of norm on F32x16, compiled once for each instruction set.
#pragma once

#include "base/fault.h"
#include "base/simd.h"
#include "ops/norm/row.h"

namespace strata {
namespace {

STRATA_SIMD float sum_squares(const float* x, int64_t n) {
  F32x16 lanes = zero16();
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const F32x16 values = load16(x + i);
    lanes = fma16(values, values, lanes);
  }
  if (i < n && !fault(Fault::SkipTail)) {
    const F32x16 rest = load16_first(x + i, n - i);
    lanes = fma16(rest, rest, lanes);
  }
  if (fault(Fault::DropLane)) {
    float kept[16];
    store16(kept, lanes);
    kept[5] = 0;
    lanes = load16(kept);
  }
  return sum16(lanes);
}

STRATA_SIMD void norm_row(const NormRow& row) {
  const float mean = sum_squares(row.x, row.width) / static_cast<float>(row.width);
  const F32x16 scale = broadcast16(1.0f / __builtin_sqrtf(mean + row.eps));
  int64_t i = 0;
  for (; i + 16 <= row.width; i += 16) store16(row.y + i, load16(row.x + i) * scale * load16(row.weight + i));
  const int64_t rest = row.width - i;
  if (rest > 0)
    store16_first(row.y + i, load16_first(row.x + i, rest) * scale * load16_first(row.weight + i, rest), rest);
  if (fault(Fault::WritePastSet)) row.y[row.width] = 0;
}

}  // namespace
}  // namespace strata
