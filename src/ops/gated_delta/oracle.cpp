#include "ops/oracle.h"

#include <cmath>
#include <vector>

#include "ops/gated_delta/gated_delta.h"

namespace strata {
namespace {

// scale · x / sqrt(sum x² + 1e-6) of head `head` in row t.
std::vector<double> normalised(const Tensor& x, int64_t t, int64_t head, double scale) {
  std::vector<double> y(static_cast<size_t>(x.extent(2)));
  double sum = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    y[i] = element(x, t, head, i);
    sum += y[i] * y[i];
  }
  for (double& value : y) value *= scale / std::sqrt(sum + 1e-6);
  return y;
}

}  // namespace

void gated_delta_oracle(const GatedDeltaArgs& args, double* out, double* state) {
  const int64_t rows = args.q.extent(0), key_heads = args.q.extent(1), dk = args.q.extent(2);
  const int64_t value_heads = args.v.extent(1), dv = args.v.extent(2);
  for (int64_t h = 0; h < value_heads; ++h) {
    const int64_t key_head = args.mapping == HeadMapping::Grouped ? h / (value_heads / key_heads) : h % key_heads;
    double* s = state + h * dk * dv;
    for (int64_t i = 0; i < dk; ++i)
      for (int64_t j = 0; j < dv; ++j) s[i * dv + j] = element(args.state, h, i, j);

    for (int64_t t = 0; t < rows; ++t) {
      const std::vector<double> q = normalised(args.q, t, key_head, 1 / std::sqrt(static_cast<double>(dk)));
      const std::vector<double> k = normalised(args.k, t, key_head, 1);
      const double decay = std::exp(element(args.g, t, h));
      const double beta = element(args.beta, t, h);
      for (int64_t j = 0; j < dv; ++j) {
        double kv = 0;
        for (int64_t i = 0; i < dk; ++i) {
          s[i * dv + j] *= decay;
          kv += s[i * dv + j] * k[static_cast<size_t>(i)];
        }
        const double delta = beta * (element(args.v, t, h, j) - kv);
        double o = 0;
        for (int64_t i = 0; i < dk; ++i) {
          s[i * dv + j] += k[static_cast<size_t>(i)] * delta;
          o += s[i * dv + j] * q[static_cast<size_t>(i)];
        }
        out[(t * value_heads + h) * dv + j] = o;
      }
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
