#pragma once

#include "base/fault.h"
#include "base/simd.h"
#include "ops/hyper_connection/lanes.h"

namespace strata {
namespace {

// visit(offset, lanes) for the 16-lane parts of n elements.
template <class Visit>
STRATA_SIMD void for_lanes(int64_t n, Visit visit) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) visit(i, int64_t{16});
  if (i < n && !fault(Fault::SkipTail)) visit(i, n - i);
}
STRATA_SIMD F32x16 load_part(const float* p, int64_t n) { return n == 16 ? load16(p) : load16_first(p, n); }
STRATA_SIMD void store_part(float* p, F32x16 x, int64_t n) { n == 16 ? store16(p, x) : store16_first(p, x, n); }

// Streams in order, fused.
void read_row(const HyperReadRow& row) {
  const F32x16 one = broadcast16(1.0f), streams = broadcast16(static_cast<float>(row.streams));
  for_lanes(row.count, [&](int64_t i, int64_t n) {
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
    store_part(row.x + i, fma16(gate, load_part(row.block + i, n), load_part(row.x + i, n)), n);
  });
}

}  // namespace
}  // namespace strata
