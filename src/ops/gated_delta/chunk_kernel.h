// The chunk form, columns in lanes. Included by one file per instruction set.
//
// Every sum of a row runs in one order: the state's terms by key, the decay, then the rows of the chunk by slot. Rows
// are taken a few at a time only so that what they share is loaded once; no sum depends on that.
#pragma once

#include "ops/gated_delta/columns.h"
#include "ops/gated_delta/kernels.h"
#include "ops/gated_delta/normalise_kernel.h"

namespace strata {
namespace {

constexpr int64_t kSlots = 64;
#if defined(__AVX512F__)
constexpr int kTileRows = 3, kTileVectors = 4, kSingleVectors = 8, kFoldKeys = 6;
#elif defined(__AVX2__)
constexpr int kTileRows = 3, kTileVectors = 1, kSingleVectors = 2, kFoldKeys = 6;
#else
constexpr int kTileRows = 2, kTileVectors = 1, kSingleVectors = 2, kFoldKeys = 2;
#endif

// k·k_s and q·k_s for kRows rows s of the ring.
template <int kRows>
STRATA_SIMD void products_of(const ChunkProducts& a, int64_t s) {
  F32x16 kk[kRows], qk[kRows];
  for (int r = 0; r < kRows; ++r) kk[r] = qk[r] = zero16();
  const float* k = a.k + a.slot * a.key_stride;
  for_lanes(a.dk, [&](int64_t i, int64_t lanes) {
    const F32x16 key = load_part(k + i, lanes), query = load_part(a.q + i, lanes);
    for (int r = 0; r < kRows; ++r) {
      const float* row = a.k + (s + r) * a.key_stride + i;
      __builtin_prefetch(row + 8 * a.key_stride);
      const F32x16 other = load_part(row, lanes);
      kk[r] = fma16(key, other, kk[r]);
      qk[r] = fma16(query, other, qk[r]);
    }
  });
  for (int r = 0; r < kRows; ++r) {
    a.kk[s + r] = sum16(kk[r]);
    a.qk[s + r] = sum16(qk[r]);
  }
}

void chunk_products(const ChunkProducts& a) {
  int64_t s = 0;
  for (; s + 4 <= a.slot + 1; s += 4) products_of<4>(a, s);
  for (; s <= a.slot; ++s) products_of<1>(a, s);
}

// e^(to - prefix[s]) for s < slots in whole vectors, 0 before the row that cleared the state. A difference has two f32
// words, so that a large one does not cost the exponential its precision.
STRATA_SIMD void decays_to(double to, const double* prefix, int64_t cleared, int64_t slots, float* out) {
  float high[kSlots], low[kSlots];
  const int64_t whole = (slots + 15) / 16 * 16;
  for (int64_t s = 0; s < whole; ++s) {
    const double difference = to - prefix[s];
    high[s] = static_cast<float>(difference);
    low[s] = static_cast<float>(difference - static_cast<double>(high[s]));
  }
  for (int64_t s = 0; s < whole; s += 16) {
    F32x16 e = exp16(load16(high + s));
    e = fma16(e, load16(low + s), e);
    if (fault(Fault::OverflowExp)) {
      float forward[16], backward[16];
      for (int l = 0; l < 16; ++l) {
        forward[l] = static_cast<float>(to);
        backward[l] = static_cast<float>(-prefix[s + l]);
      }
      e = exp16(load16(forward)) * exp16(load16(backward));
    }
    store16(out + s, e);
  }
  for (int64_t s = 0; s < cleared; ++s) out[s] = 0;
}

// The decay of the state: 0 behind a row that cleared it.
STRATA_SIMD float decay_since_start(double prefix, int64_t cleared) {
  if (cleared >= 0) return 0;
  const float high = static_cast<float>(prefix), low = static_cast<float>(prefix - static_cast<double>(high));
  float lanes[16];
  store16(lanes, exp16(broadcast16(high)));
  const float e = lanes[0];
  return e + e * low;
}

void chunk_coefficients(const ChunkCoefficients& a) {
  alignas(64) float decay[kSlots];
  decays_to(a.prefix[a.slot], a.prefix, a.cleared, a.slot + 1, decay);
  for (int64_t s = 0; s <= a.slot; s += 16) {
    const F32x16 d = load16(decay + s);
    store16(a.kk_decayed + s, d * load16(a.kk + s));
    store16(a.qk_decayed + s, d * load16(a.qk + s));
  }
  *a.from_state = decay_since_start(a.prefix[a.slot], a.cleared);
}

// Rows t .. t + kRows - 1 of the new ones.
template <int kRows, int kVectors>
STRATA_SIMD void chunk_tile(const ChunkSlice& a, int64_t t, int64_t last) {
  Columns<kVectors> kv[kRows], out[kRows];
  for (int r = 0; r < kRows; ++r) {
    kv[r] = out[r] = zero_columns<kVectors>();
    prefetch_columns<kVectors>(a.v + (t + r) * a.v_stride);
  }
  const float *k = a.k + t * a.key_stride, *q = a.q + t * a.query_stride;
  for (int64_t i = 0; i < a.dk; ++i) {
    const Columns<kVectors> s = load_columns<kVectors>(a.state + i * a.state_stride, last);
    if (kRows == 1) prefetch_columns<kVectors>(a.state + (i + kKeysAhead) * a.state_stride);
    for (int r = 0; r < kRows; ++r) {
      multiply_add(broadcast16(k[r * a.key_stride + i]), s, kv[r]);
      multiply_add(broadcast16(q[r * a.query_stride + i]), s, out[r]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    const F32x16 decay = broadcast16(a.from_state[t + r]);
    for (int c = 0; c < kVectors; ++c) {
      kv[r].v[c] = decay * kv[r].v[c];
      out[r].v[c] = decay * out[r].v[c];
    }
  }
  const float *kk = a.kk + t * kSlots, *qk = a.qk + t * kSlots;
  const int64_t slot = a.first + t;
  for (int64_t s = 0; s < slot; ++s) {
    const Columns<kVectors> u = load_columns<kVectors>(a.u + s * a.u_stride, last);
    if (kRows == 1) prefetch_columns<kVectors>(a.u + (s + kKeysAhead) * a.u_stride);
    for (int r = 0; r < kRows; ++r) {
      multiply_add(broadcast16(kk[r * kSlots + s]), u, kv[r]);
      multiply_add(broadcast16(qk[r * kSlots + s]), u, out[r]);
    }
  }
  for (int p = 0; p < kRows; ++p) {
    const F32x16 beta = broadcast16(a.beta[(t + p) * a.beta_stride]);
    Columns<kVectors> u = load_columns<kVectors>(a.v + (t + p) * a.v_stride, last);
    for (int c = 0; c < kVectors; ++c) u.v[c] = beta * (u.v[c] - kv[p].v[c]);
    store_columns<kVectors>(a.u + (slot + p) * a.u_stride, u, last);
    for (int r = p; r < kRows; ++r) {
      const int64_t at = r > p && fault(Fault::TransposeTile) ? p * kSlots + slot + r : r * kSlots + slot + p;
      if (r > p) multiply_add(broadcast16(kk[at]), u, kv[r]);
      multiply_add(broadcast16(qk[at]), u, out[r]);
    }
    store_columns<kVectors>(a.out + (t + p) * a.out_stride, out[p], last);
  }
}

template <int kVectors>
void chunk_columns(const ChunkSlice& a, int64_t last) {
  int64_t t = 0;
  for (; t + kTileRows <= a.rows; t += kTileRows) chunk_tile<kTileRows, kVectors>(a, t, last);
  if (t < a.rows && fault(Fault::SkipTail)) return;
  for (; t < a.rows; ++t) chunk_tile<1, kVectors>(a, t, last);
  if (fault(Fault::WritePastSet)) a.out[(a.rows - 1) * a.out_stride + 16 * (kVectors - 1) + last] = 0;
}

void chunk_slice(const ChunkSlice& a) {
  const auto columns = [&](int64_t first, auto vectors, int64_t last) {
    ChunkSlice part = a;
    part.state += first;
    part.v += first;
    part.u += first;
    part.out += first;
    chunk_columns<decltype(vectors)::value>(part, last);
  };
  // A single row streams the state from memory: longer runs of it.
  a.rows == 1 ? for_columns<kSingleVectors>(a.count, columns) : for_columns<kTileVectors>(a.count, columns);
}

// Keys i .. i + kKeys - 1 of the state: keep · S + sum over s of k_s w_s, w [rows, 16 kVectors].
template <int kKeys, int kVectors>
STRATA_SIMD void fold_tile(const ChunkFold& a, int64_t i, float keep, const float* w, int64_t last) {
  Columns<kVectors> sum[kKeys];
  for (int r = 0; r < kKeys; ++r) {
    sum[r] = load_columns<kVectors>(a.from + (i + r) * a.from_stride, last);
    for (int c = 0; c < kVectors; ++c) sum[r].v[c] = broadcast16(keep) * sum[r].v[c];
  }
  for (int64_t s = 0; s < a.rows; ++s) {
    const Columns<kVectors> row = load_columns<kVectors>(w + s * 16 * kVectors, 16);
    for (int r = 0; r < kKeys; ++r) multiply_add(broadcast16(a.k[s * a.key_stride + i + r]), row, sum[r]);
  }
  for (int r = 0; r < kKeys; ++r) store_columns<kVectors>(a.to + (i + r) * a.to_stride, sum[r], last);
}

template <int kVectors>
void fold_columns(const ChunkFold& a, float keep, const float* weight, int64_t last) {
  alignas(64) float w[kSlots * 16 * kVectors];
  for (int64_t s = 0; s < a.rows; ++s) {
    Columns<kVectors> row = load_columns<kVectors>(a.u + s * a.u_stride, last);
    for (int c = 0; c < kVectors; ++c) row.v[c] = broadcast16(weight[s]) * row.v[c];
    store_columns<kVectors>(w + s * 16 * kVectors, row, 16);
  }
  int64_t i = 0;
  for (; i + kFoldKeys <= a.dk; i += kFoldKeys) fold_tile<kFoldKeys, kVectors>(a, i, keep, w, last);
  for (; i < a.dk; ++i) fold_tile<1, kVectors>(a, i, keep, w, last);
}

void chunk_fold(const ChunkFold& a) {
  alignas(64) float weight[kSlots];
  const int64_t end = a.rows < kSlots && fault(Fault::GateAtChunkEnd) ? kSlots - 1 : a.rows - 1;
  decays_to(a.prefix[end], a.prefix, a.cleared, a.rows, weight);
  const float keep = decay_since_start(a.prefix[end], a.cleared);
  for_columns<kTileVectors>(a.count, [&](int64_t first, auto vectors, int64_t last) {
    ChunkFold part = a;
    part.u += first;
    part.from += first;
    part.to += first;
    fold_columns<decltype(vectors)::value>(part, keep, weight, last);
  });
}

constexpr ChunkKernels kChunkKernels{normalise_row, chunk_products, chunk_coefficients, chunk_slice, chunk_fold};

}  // namespace
}  // namespace strata
