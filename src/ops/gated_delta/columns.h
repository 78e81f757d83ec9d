// Columns of a state in lanes: a few vectors side by side, the last one perhaps not full.
#pragma once

#include "base/fault.h"
#include "base/simd.h"

namespace strata {
namespace {

template <int kVectors>
struct Columns {
  F32x16 v[kVectors];
};

// The last vector holds `last` lanes.
template <int kVectors>
STRATA_SIMD Columns<kVectors> load_columns(const float* p, int64_t last) {
  Columns<kVectors> r;
  for (int c = 0; c < kVectors - 1; ++c) r.v[c] = load16(p + 16 * c);
  const float* tail = p + 16 * (kVectors - 1);
  r.v[kVectors - 1] = last == 16 ? load16(tail) : load16_first(tail, last);
  return r;
}
template <int kVectors>
STRATA_SIMD void store_columns(float* p, const Columns<kVectors>& x, int64_t last) {
  for (int c = 0; c < kVectors - 1; ++c) store16(p + 16 * c, x.v[c]);
  float* tail = p + 16 * (kVectors - 1);
  last == 16 ? store16(tail, x.v[kVectors - 1]) : store16_first(tail, x.v[kVectors - 1], last);
}
template <int kVectors>
STRATA_SIMD void multiply_add(F32x16 factor, const Columns<kVectors>& x, Columns<kVectors>& sum) {
  for (int c = 0; c < kVectors; ++c) sum.v[c] = fma16(factor, x.v[c], sum.v[c]);
}

template <int kVectors>
STRATA_SIMD Columns<kVectors> zero_columns() {
  Columns<kVectors> r;
  for (int c = 0; c < kVectors; ++c) r.v[c] = zero16();
  return r;
}
// Strides of a row are too long for the processor's own prefetching, and it stops at every page of a state.
template <int kVectors>
STRATA_SIMD void prefetch_columns(const float* p) {
  for (int c = 0; c < kVectors; ++c) __builtin_prefetch(p + 16 * c);
}
constexpr int64_t kKeysAhead = 16;  // keys of a state that is read once, from memory

template <int kValue>
struct Number {
  static constexpr int value = kValue;
};

// visit(first column, Number<vectors>, lanes of the last vector) for `count` columns. Columns never meet, so how they
// are grouped changes no bit.
template <int kVectors, class Visit>
STRATA_SIMD void for_columns(int64_t count, Visit visit) {
  constexpr int64_t kWidth = 16 * kVectors;
  int64_t c = 0;
  for (; c + kWidth <= count; c += kWidth) visit(c, Number<kVectors>{}, int64_t{16});
  for (; c + 16 <= count; c += 16) visit(c, Number<1>{}, int64_t{16});
  if (c < count && !fault(Fault::SkipTail)) visit(c, Number<1>{}, count - c);
}

}  // namespace
}  // namespace strata
