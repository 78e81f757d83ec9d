#pragma once

#include "base/simd.h"
#include "ops/gate_act/lanes.h"

namespace strata {
namespace {

template <bool silu, bool accumulate>
STRATA_SIMD void gated(const GateRow& row) {
  const F32x16 one = broadcast16(1.0f);
  for (int64_t i = 0; i < row.count; i += 16) {
    const int64_t n = row.count - i < 16 ? row.count - i : 16;
    const F32x16 gate = load16_first(row.gate + i, n);
    F32x16 result = (silu ? gate : one) / (one + exp16(zero16() - gate));
    if (row.value != nullptr) result = load16_first(row.value + i, n) * result;
    if (accumulate) result = load16_first(row.y + i, n) + result;
    store16_first(row.y + i, result, n);
  }
}

void gate_row(const GateRow& row) {
  if (row.silu) return row.accumulate ? gated<true, true>(row) : gated<true, false>(row);
  return row.accumulate ? gated<false, true>(row) : gated<false, false>(row);
}

}  // namespace
}  // namespace strata
