// Random problems for the gated delta rule, and what an f32 arm may err on them.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "ops/gated_delta/cases.h"
#include "ops/gated_delta/gated_delta.h"
#include "support/ops_test.h"

namespace strata::test {

struct GatedDeltaReference {
  std::vector<double> out, state;              // the oracle's
  std::vector<double> out_bound, state_bound;  // of one element's error
};

// From the state before the call. The bound is that of the recurrence, unless a chunk is given.
inline GatedDeltaReference gated_delta_reference(const GatedDeltaArgs& args, int64_t chunk = 1) {
  GatedDeltaReference ref;
  ref.out.resize(static_cast<size_t>(args.out.elements()));
  ref.state.resize(static_cast<size_t>(args.state.elements()));
  gated_delta_oracle(args, ref.out.data(), ref.state.data());
  ref.out_bound.resize(ref.out.size());
  ref.state_bound.resize(ref.state.size());
  gated_delta_bound(args, chunk, ref.out_bound.data(), ref.state_bound.data());
  return ref;
}

// q, k and v are views into one row of convolution outputs [q | k | v]; canaries follow each row.
struct GatedDeltaCase {
  GatedDeltaCase(const GatedDeltaShape& shape, uint64_t seed)
      : conv(DType::F32, {shape.rows, 2 * shape.key_heads * shape.dk + shape.value_heads * shape.dv}, {5}),
        g(DType::F32, {shape.rows, shape.value_heads}),
        beta(DType::F32, {shape.rows, shape.value_heads}),
        state(DType::F32, {shape.value_heads, shape.dk, shape.dv}),
        out(DType::F32, {shape.rows, shape.value_heads, shape.dv}) {
    Random random(seed);
    args.q = heads_view(conv, 0, shape.key_heads, shape.dk);
    args.k = heads_view(conv, shape.key_heads * shape.dk, shape.key_heads, shape.dk);
    args.v = heads_view(conv, 2 * shape.key_heads * shape.dk, shape.value_heads, shape.dv);
    fill(args.v, random);
    fill(state, random, -0.5f, 0.5f);
    for (const Tensor& x : {args.q, args.k})
      for (int64_t t = 0; t < shape.rows; ++t)
        for (int64_t head = 0; head < shape.key_heads; ++head) fill_key(x[t][head], random);
    for (int64_t h = 0; h < shape.value_heads; ++h) {
      const auto kind = mixed_gates(h, seed);
      for (int64_t t = 0; t < shape.rows; ++t) {
        g.f({t, h}) = random_gate(kind, t, random);
        beta.f({t, h}) = random_beta(kind, random);
      }
    }
    args.g = g;
    args.beta = beta;
    args.mapping = shape.mapping;
    args.state = state;
    args.out = out;
  }

  Owned conv, g, beta, state, out;
  GatedDeltaArgs args;
};

// The same problem, rows first .. first + count - 1 only.
inline GatedDeltaArgs rows_of(const GatedDeltaArgs& args, int64_t first, int64_t count) {
  GatedDeltaArgs part = args;
  for (Tensor GatedDeltaArgs::*tensor : {&GatedDeltaArgs::q, &GatedDeltaArgs::k, &GatedDeltaArgs::v, &GatedDeltaArgs::g,
                                         &GatedDeltaArgs::beta, &GatedDeltaArgs::out})
    part.*tensor = (args.*tensor).slice(first, count);
  return part;
}

}  // namespace strata::test
