// Shared by the oracles and bounds of this operator, all in float64.
#pragma once

#include <cmath>
#include <vector>

#include "ops/gated_delta/gated_delta.h"
#include "ops/oracle.h"

namespace strata {

inline int64_t key_head_of(HeadMapping mapping, int64_t head, int64_t key_heads, int64_t value_heads) {
  return mapping == HeadMapping::Grouped ? head / (value_heads / key_heads) : head % key_heads;
}

// scale · x / sqrt(sum x² + 1e-6) of head `head` in row t.
inline std::vector<double> normalised(const Tensor& x, int64_t t, int64_t head, double scale) {
  std::vector<double> y(static_cast<size_t>(x.extent(2)));
  double sum = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    y[i] = element(x, t, head, i);
    sum += y[i] * y[i];
  }
  for (double& value : y) value *= scale / std::sqrt(sum + 1e-6);
  return y;
}

// One token of one head.
struct DeltaToken {
  std::vector<double> q, k;  // [dk], normalised; q has 1/sqrt(dk)
  std::vector<double> v;     // [dv]
  double decay, beta;
};

template <class Args>
DeltaToken delta_token(const Args& args, int64_t t, int64_t head) {
  const int64_t key_head = key_head_of(args.mapping, head, args.q.extent(1), args.v.extent(1));
  DeltaToken token{normalised(args.q, t, key_head, 1 / std::sqrt(static_cast<double>(args.q.extent(2)))),
                   normalised(args.k, t, key_head, 1),
                   {},
                   std::exp(element(args.g, t, head)),
                   element(args.beta, t, head)};
  for (int64_t j = 0; j < args.v.extent(2); ++j) token.v.push_back(element(args.v, t, head, j));
  return token;
}

// The state of one head [dk, dv] as it stands in `state`.
inline void read_state(const Tensor& state, int64_t head, double* s) {
  for (int64_t i = 0; i < state.extent(1); ++i)
    for (int64_t j = 0; j < state.extent(2); ++j) s[i * state.extent(2) + j] = element(state, head, i, j);
}

}  // namespace strata
