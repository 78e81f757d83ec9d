// The recurrence, columns in lanes. Included by one file per instruction set.
//
// One pass over the state per token: the update of token t, its read and the S'k of token t + 1 meet each element
// while it is in a register. S'k is taken from the state before its decay and multiplied by the decay as a whole.
#pragma once

#include "ops/gated_delta/columns.h"
#include "ops/gated_delta/kernels.h"
#include "ops/gated_delta/normalise_kernel.h"

namespace strata {
namespace {

#if defined(__AVX512F__)
constexpr int kSerialVectors = 4, kSingleVectors = 8;
#else
constexpr int kSerialVectors = 2, kSingleVectors = 4;  // the sums of more do not fit 16 registers
#endif

// S'k, i in order.
template <int kVectors>
STRATA_SIMD Columns<kVectors> product_with_key(const SerialSlice& a, int64_t last) {
  Columns<kVectors> kv = zero_columns<kVectors>();
  for (int64_t i = 0; i < a.dk; ++i) {
    const Columns<kVectors> s = load_columns<kVectors>(a.state + i * a.state_stride, last);
    prefetch_columns<kVectors>(a.state + (i + kKeysAhead) * a.state_stride);
    multiply_add(broadcast16(a.k[i]), s, kv);
  }
  return kv;
}

template <int kVectors, bool kNext>
STRATA_SIMD Columns<kVectors> token(const SerialSlice& a, int64_t t, const Columns<kVectors>& kv, int64_t last) {
  const F32x16 decay = broadcast16(a.decay[t * a.decay_stride]), beta = broadcast16(a.beta[t * a.beta_stride]);
  const float *q = a.q + t * a.key_stride, *k = a.k + t * a.key_stride, *next = k + a.key_stride;
  Columns<kVectors> delta = load_columns<kVectors>(a.v + t * a.v_stride, last);
  Columns<kVectors> out = zero_columns<kVectors>(), kv_next = zero_columns<kVectors>();
  if (kNext) prefetch_columns<kVectors>(a.v + (t + 1) * a.v_stride);
  for (int c = 0; c < kVectors; ++c) delta.v[c] = beta * (delta.v[c] - decay * kv.v[c]);
  for (int64_t i = 0; i < a.dk; ++i) {
    Columns<kVectors> s = load_columns<kVectors>(a.state + i * a.state_stride, last);
    const F32x16 key = broadcast16(k[i]), query = broadcast16(q[i]), after = broadcast16(kNext ? next[i] : 0.0f);
    for (int c = 0; c < kVectors; ++c) {
      s.v[c] = fma16(key, delta.v[c], decay * s.v[c]);
      out.v[c] = fma16(query, s.v[c], out.v[c]);
      if constexpr (kNext) kv_next.v[c] = fma16(after, s.v[c], kv_next.v[c]);
    }
    store_columns<kVectors>(a.state + i * a.state_stride, s, last);
  }
  store_columns<kVectors>(a.out + t * a.out_stride, out, last);
  return kv_next;
}

template <int kVectors>
void serial_columns(const SerialSlice& a, int64_t last) {
  Columns<kVectors> kv = product_with_key<kVectors>(a, last);
  for (int64_t t = 0; t + 1 < a.rows; ++t) kv = token<kVectors, true>(a, t, kv, last);
  token<kVectors, false>(a, a.rows - 1, kv, last);
  if (fault(Fault::WritePastSet)) a.out[(a.rows - 1) * a.out_stride + 16 * (kVectors - 1) + last] = 0;
}

void serial_slice(const SerialSlice& a) {
  if (a.rows == 0) return;
  const auto columns = [&](int64_t first, auto vectors, int64_t last) {
    SerialSlice part = a;
    part.state += first;
    part.v += first;
    part.out += first;
    serial_columns<decltype(vectors)::value>(part, last);
  };
  // A single row streams the state from memory: longer runs of it.
  a.rows == 1 ? for_columns<kSingleVectors>(a.count, columns) : for_columns<kSerialVectors>(a.count, columns);
}

}  // namespace
}  // namespace strata
