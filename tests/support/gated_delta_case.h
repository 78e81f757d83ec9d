// Random problems for the gated delta rule, and what an f32 arm may err on them.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "ops/gated_delta/gated_delta.h"
#include "support/ops_test.h"

namespace strata::test {

struct GatedDeltaReference {
  std::vector<double> out, state;              // the oracle's
  std::vector<double> out_bound, state_bound;  // of one element's error
};

// x / sqrt(sum x² + 1e-6) · scale
inline std::vector<double> unit_row(const Tensor& row, double scale) {
  const float* x = row.f32();
  std::vector<double> y(x, x + row.extent(0));
  double sum = 1e-6;
  for (double value : y) sum += value * value;
  for (double& value : y) value *= scale / std::sqrt(sum);
  return y;
}

// Bound of one head, by a recursion over tokens for each column s of the state (README of the operator). E is the
// 2-norm of the column's error, u the unit roundoff, sums over the column in any order:
//   k^, q^   relative errors ek = (m/2 + 5) u, eq = (m/2 + 8) u: half of that of the sum of squares (m = dk/16 + 5
//            roundings in 16 lanes and their tree), eps, sqrt, division, factor; q^ has 1/sqrt(dk) as well
//   decay    E <- a E + 5 u a|s| + 1.3e-38 |s|: exp is within 2 ulp = 4 u, one product; below 2^-126 it may be 0
//   delta    D = beta ((dk u + ek) sum |s_i k_i| + 3 u |v - kv|)
//   update   E <- E + |k| (D + (ek + u) |delta|) + u |s|: the old error passes through I - beta k k', of norm <= 1
//   output   |q| E + (dk u + eq) sum |s_i q_i|
// The factor 1.01 covers products of errors, kTiny results below the normal range.
inline void gated_delta_head_bound(const GatedDeltaArgs& args, int64_t h, int64_t key_head, GatedDeltaReference& ref) {
  const int64_t rows = args.q.extent(0), heads = args.v.extent(1), dk = args.q.extent(2), dv = args.v.extent(2);
  const double n = static_cast<double>(dk), m = std::ceil(n / 16) + 5, ek = (m / 2 + 5) * kU, eq = (m / 2 + 8) * kU;
  const double tiny = n * kTiny;
  std::vector<double> s(static_cast<size_t>(dk * dv)), error(static_cast<size_t>(dv));
  for (int64_t i = 0; i < dk; ++i)
    for (int64_t j = 0; j < dv; ++j) s[static_cast<size_t>(i * dv + j)] = args.state[h].row<float>(i)[j];
  for (int64_t t = 0; t < rows; ++t) {
    const auto q = unit_row(args.q[t][key_head], 1 / std::sqrt(n)), k = unit_row(args.k[t][key_head], 1);
    const double decay = std::exp(static_cast<double>(args.g.row<float>(t)[h])), beta = args.beta.row<float>(t)[h];
    for (int64_t j = 0; j < dv; ++j) {
      double norm = 0, kv = 0, kv_abs = 0, k_norm = 0, q_norm = 0, o_abs = 0, new_norm = 0;
      for (int64_t i = 0; i < dk; ++i) {
        double& x = s[static_cast<size_t>(i * dv + j)];
        const double ki = k[static_cast<size_t>(i)], qi = q[static_cast<size_t>(i)];
        norm += x * x;
        x *= decay;
        kv += x * ki;
        kv_abs += std::fabs(x * ki);
        k_norm += ki * ki;
        q_norm += qi * qi;
      }
      const double residual = args.v[t].row<float>(h)[j] - kv, delta = beta * residual;
      for (int64_t i = 0; i < dk; ++i) {
        double& x = s[static_cast<size_t>(i * dv + j)];
        x += k[static_cast<size_t>(i)] * delta;
        new_norm += x * x;
        o_abs += std::fabs(x * q[static_cast<size_t>(i)]);
      }
      double& e = error[static_cast<size_t>(j)];
      e = decay * e + (5 * kU * decay + 1.3e-38) * std::sqrt(norm);
      const double delta_error = beta * ((n * kU + ek) * kv_abs + 3 * kU * std::fabs(residual));
      e += std::sqrt(k_norm) * (delta_error + (ek + kU) * std::fabs(delta)) + kU * std::sqrt(new_norm) + tiny;
      ref.out_bound[static_cast<size_t>((t * heads + h) * dv + j)] =
          1.01 * (std::sqrt(q_norm) * e + (n * kU + eq) * o_abs + tiny);
    }
  }
  for (int64_t i = 0; i < dk; ++i)
    for (int64_t j = 0; j < dv; ++j)
      ref.state_bound[static_cast<size_t>((h * dk + i) * dv + j)] = 1.01 * error[static_cast<size_t>(j)];
}

// From the state before the call.
inline GatedDeltaReference gated_delta_reference(const GatedDeltaArgs& args) {
  const int64_t key_heads = args.q.extent(1), heads = args.v.extent(1);
  GatedDeltaReference ref;
  ref.out.resize(static_cast<size_t>(args.out.elements()));
  ref.state.resize(static_cast<size_t>(args.state.elements()));
  gated_delta_oracle(args, ref.out.data(), ref.state.data());
  ref.out_bound.resize(ref.out.size());
  ref.state_bound.resize(ref.state.size());
  for (int64_t h = 0; h < heads; ++h)
    gated_delta_head_bound(args, h, args.mapping == HeadMapping::Grouped ? h * key_heads / heads : h % key_heads, ref);
  return ref;
}

// Gates of a head. Every head of a problem has its own kind and its own random data.
enum class GateKind { Mild, Moderate, Strong, Reset, NoDecay, Minus30, Minus88, Edge };
inline constexpr int kGateKinds = 8;

inline float random_gate(GateKind kind, int64_t t, Random& random) {
  constexpr float kEdges[] = {0, -0.01f, -87.3f, -87.4f, -88, -88.8f, -1e4f, -std::numeric_limits<float>::infinity()};
  switch (kind) {
    case GateKind::Mild: return random.uniform(-0.05f, -1e-4f);
    case GateKind::Moderate: return random.uniform(-2, -0.05f);
    case GateKind::Strong: return random.uniform(-30, 0);
    case GateKind::Reset: return t % 45 == 20 ? -1e4f : random.uniform(-0.2f, -1e-3f);
    case GateKind::NoDecay: return 0;
    case GateKind::Minus30: return -30;
    case GateKind::Minus88: return -88;
    case GateKind::Edge: return kEdges[random.below(8)];
  }
  return 0;
}

inline float random_beta(GateKind kind, Random& random) {
  if (kind == GateKind::NoDecay) return random.below(2) == 0 ? 0.0f : 1.0f;
  if (kind == GateKind::Edge && random.below(2) == 0) return random.below(2) == 0 ? 1e-30f : 1.0f;
  return random.uniform(0.02f, 0.98f);
}

struct GatedDeltaShape {
  int64_t rows, key_heads, value_heads, dk, dv;
  HeadMapping mapping = HeadMapping::Grouped;
};

// q, k and v are views into one row of convolution outputs [q | k | v]; canaries follow each row.
struct GatedDeltaCase {
  GatedDeltaCase(const GatedDeltaShape& shape, uint64_t seed)
      : conv(DType::F32, {shape.rows, 2 * shape.key_heads * shape.dk + shape.value_heads * shape.dv}, {5}),
        g(DType::F32, {shape.rows, shape.value_heads}),
        beta(DType::F32, {shape.rows, shape.value_heads}),
        state(DType::F32, {shape.value_heads, shape.dk, shape.dv}),
        out(DType::F32, {shape.rows, shape.value_heads, shape.dv}) {
    Random random(seed);
    args.q = view(0, shape.key_heads, shape.dk);
    args.k = view(shape.key_heads * shape.dk, shape.key_heads, shape.dk);
    args.v = view(2 * shape.key_heads * shape.dk, shape.value_heads, shape.dv);
    fill(args.v, random);
    fill(state, random, -0.5f, 0.5f);
    // Sizes at which the eps counts, ordinary and large ones, and a zero vector.
    for (const Tensor& x : {args.q, args.k})
      for (int64_t t = 0; t < shape.rows; ++t)
        for (int64_t head = 0; head < shape.key_heads; ++head) {
          const float size[] = {1, 1, 1e-4f, 50};
          const float limit = random.below(40) == 0 ? 0 : size[random.below(4)];
          fill(x[t][head], random, -limit, limit);
        }
    for (int64_t h = 0; h < shape.value_heads; ++h) {
      const auto kind = static_cast<GateKind>((static_cast<uint64_t>(h) + seed) % kGateKinds);
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

  Tensor view(int64_t first, int64_t heads, int64_t width) const {
    Tensor part = conv.t();
    part.data = part.row<float>(0) + first;
    part.rank = 3;
    part.extents = {part.extent(0), heads, width, 0};
    part.strides = {part.stride(0), width * 4, 4, 0};
    return part;
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
