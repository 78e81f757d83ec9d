// Elementwise parts of the vector kernels.
#pragma once

#include "base/fault.h"
#include "base/simd.h"
#include "ops/gated_delta/kernels.h"
#include "ops/lane_parts.h"

namespace strata {
namespace {

constexpr float kNormEps = 1e-6f;  // on the sum, inside the root

[[maybe_unused]] void normalise_row(const NormaliseRow& row) {
  F32x16 squares = zero16();
  for_lanes(row.n, [&](int64_t i, int64_t n) {
    F32x16 x = load_part(row.x + i, n);
    if (fault(Fault::DropLane)) x = load16_first(row.x + i, n - 1);
    squares = fma16(x, x, squares);
  });
  const F32x16 scale = broadcast16(row.factor / __builtin_sqrtf(sum16(squares) + kNormEps));
  for_lanes(row.n, [&](int64_t i, int64_t n) { store_part(row.out + i, load_part(row.x + i, n) * scale, n); });
}

[[maybe_unused]] void exp_row(const float* x, int64_t n, float* out) {
  for_lanes(n, [&](int64_t i, int64_t lanes) { store_part(out + i, exp16(load_part(x + i, lanes)), lanes); });
}

}  // namespace
}  // namespace strata
