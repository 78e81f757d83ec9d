#include <algorithm>

#include "ops/gated_delta/reference.h"

namespace strata {
namespace {

// One token of the recurrence on the state s [dk, dv] of one head. delta [dv], out [dv].
void step(const DeltaToken& token, double* s, double* delta, double* out) {
  const size_t dk = token.k.size(), dv = token.v.size();
  std::fill(out, out + dv, 0.0);
  std::vector<double> kv(dv);
  for (size_t i = 0; i < dk; ++i)
    for (size_t j = 0; j < dv; ++j) {
      s[i * dv + j] *= token.decay;
      kv[j] += s[i * dv + j] * token.k[i];
    }
  for (size_t j = 0; j < dv; ++j) delta[j] = token.beta * (token.v[j] - kv[j]);
  for (size_t i = 0; i < dk; ++i)
    for (size_t j = 0; j < dv; ++j) {
      s[i * dv + j] += token.k[i] * delta[j];
      out[j] += s[i * dv + j] * token.q[i];
    }
}

// The state before row `first`, from the last stored one and the rows of the ring since.
void replay_ring(const GatedDeltaAnchoredArgs& args, int64_t head, double* s) {
  const int64_t dk = args.q.extent(2), dv = args.v.extent(2);
  const int64_t key_head = key_head_of(args.mapping, head, args.q.extent(1), args.v.extent(1));
  for (int64_t slot = 0; slot < args.first % kDeltaChunk; ++slot) {
    const double decay = std::exp(element(args.ring_g, head, slot));
    for (int64_t i = 0; i < dk; ++i)
      for (int64_t j = 0; j < dv; ++j)
        s[i * dv + j] =
            decay * s[i * dv + j] + element(args.ring_k, key_head, slot, i) * element(args.ring_u, head, slot, j);
  }
}

}  // namespace

void gated_delta_oracle(const GatedDeltaArgs& args, double* out, double* state) {
  const int64_t rows = args.q.extent(0), dk = args.q.extent(2), heads = args.v.extent(1), dv = args.v.extent(2);
  std::vector<double> delta(static_cast<size_t>(dv));
  for (int64_t h = 0; h < heads; ++h) {
    double* s = state + h * dk * dv;
    read_state(args.state, h, s);
    std::vector<double> stored;
    for (int64_t t = 0; t < rows; ++t) {
      if (t == args.stored) stored.assign(s, s + dk * dv);
      step(delta_token(args, t, h), s, delta.data(), out + (t * heads + h) * dv);
    }
    std::copy(stored.begin(), stored.end(), s);
  }
}

void gated_delta_anchored_oracle(const GatedDeltaAnchoredArgs& args, const GatedDeltaAnchoredValues& values) {
  const int64_t rows = args.q.extent(0), dk = args.q.extent(2), heads = args.v.extent(1), dv = args.v.extent(2);
  std::vector<double> s(static_cast<size_t>(dk * dv));
  for (int64_t h = 0; h < heads; ++h) {
    const int64_t key_head = key_head_of(args.mapping, h, args.q.extent(1), heads);
    double* stored = values.state + h * dk * dv;
    read_state(args.state, h, stored);
    std::copy_n(stored, dk * dv, s.data());
    replay_ring(args, h, s.data());
    for (int64_t t = 0; t < rows; ++t) {
      const int64_t slot = (args.first + t) % kDeltaChunk;
      const DeltaToken token = delta_token(args, t, h);
      step(token, s.data(), values.ring_u + (h * kDeltaChunk + slot) * dv, values.out + (t * heads + h) * dv);
      for (int64_t i = 0; i < dk; ++i)
        values.ring_k[(key_head * kDeltaChunk + slot) * dk + i] = token.k[static_cast<size_t>(i)];
      if (slot == kDeltaChunk - 1) std::copy_n(s.data(), dk * dv, stored);
    }
  }
}

void gated_delta_gates_oracle(const GatedDeltaGatesArgs& args, double* g, double* beta) {
  const int64_t rows = args.alpha.extent(0), heads = args.alpha.extent(1);
  for (int64_t t = 0; t < rows; ++t)
    for (int64_t h = 0; h < heads; ++h) {
      const double x = element(args.alpha, t, h) + element(args.dt_bias, h);
      const double softplus = x > 20 ? x : std::log1p(std::exp(x));
      g[t * heads + h] = softplus * element(args.a, h);
      beta[t * heads + h] = 1 / (1 + std::exp(-element(args.b, t, h)));
    }
}

}  // namespace strata
