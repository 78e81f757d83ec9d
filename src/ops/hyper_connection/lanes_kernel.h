#pragma once

#include "base/fault.h"
#include "base/simd.h"
#include "ops/hyper_connection/lanes.h"
#include "ops/lane_parts.h"

namespace strata {
namespace {

// The lanes behind the last whole part are left out.
STRATA_SIMD bool skips(int64_t lanes) { return lanes < 16 && fault(Fault::SkipTail); }

// Streams in order, fused.
void read_row(const HyperReadRow& row) {
  const F32x16 one = broadcast16(1.0f), streams = broadcast16(static_cast<float>(row.streams));
  for_lanes(row.count, [&](int64_t i, int64_t n) {
    if (skips(n)) return;
    F32x16 sum = zero16();
    for (int64_t s = 0; s < row.streams; ++s) {
      const F32x16 logits = load_part(row.mix + s * row.mix_stride + i, n);
      const F32x16 gate = one / (one + exp16(zero16() - logits));
      sum = fma16(gate, load_part(row.normed + s * row.normed_stride + i, n), sum);
    }
    store_part(row.u + i, sum / streams, n);
  });
}

void write_row(const HyperWriteRow& row) {
  const F32x16 gate = broadcast16(row.gate);
  for_lanes(row.count, [&](int64_t i, int64_t n) {
    if (skips(n)) return;
    store_part(row.x + i, fma16(gate, load_part(row.block + i, n), load_part(row.x + i, n)), n);
  });
}

}  // namespace
}  // namespace strata
