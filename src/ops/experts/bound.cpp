#include <vector>

#include "gguf/quant.h"
#include "ops/experts/experts.h"
#include "ops/oracle.h"
#include "ops/rounding.h"

namespace strata {
namespace {

struct Approximate {
  double value, error;
};

// scale · sum w_i x_i of row `row` of an expert, where x_i already errs.
Approximate product(const Tensor& weight, const Tensor& scale, int64_t expert, int64_t row,
                    const std::vector<Approximate>& x) {
  std::vector<float> w(x.size());
  const auto n = static_cast<int64_t>(x.size());
  gguf::decoder(weight.dtype)(weight[expert].row<const void>(row), w.data(), n);
  double sum = 0, magnitude = 0, carried = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double wi = static_cast<double>(w[i]);
    sum += wi * x[i].value;
    magnitude += std::fabs(wi) * (std::fabs(x[i].value) + x[i].error);
    carried += std::fabs(wi) * x[i].error;
  }
  const double factor = scale.empty() ? 1 : element(scale, expert);
  const double error = gamma(dot_roundings(n) + 1) * magnitude + carried + static_cast<double>(n) * kTiny;
  return {factor * sum, std::fabs(factor) * error + kTiny};
}

// silu(g) · h with the errors of both.
Approximate activate(const Approximate& g, const Approximate& h) {
  const double s = silu(g.value), of_silu = silu_error(g.value, g.error);
  const double carried = of_silu * (std::fabs(h.value) + h.error) + std::fabs(s) * h.error;
  return {s * h.value, carried + gamma(1) * (std::fabs(s * h.value) + carried) + kTiny};
}

}  // namespace

void experts_bound(const ExpertsArgs& args, double* out) {
  const int64_t rows = args.x.extent(0), hidden = args.x.extent(1), k = args.ids.extent(1);
  const int64_t inner = args.gate.extent(1);
  const double sum_roundings = gamma(static_cast<double>(k));
  for (int64_t t = 0; t < rows; ++t, out += hidden) {
    std::vector<Approximate> x(static_cast<size_t>(hidden)), act(static_cast<size_t>(inner));
    for (int64_t i = 0; i < hidden; ++i) x[static_cast<size_t>(i)] = {element(args.x, t, i), 0};
    std::fill(out, out + hidden, static_cast<double>(k) * kTiny);
    for (int64_t slot = 0; slot < k; ++slot) {
      const int64_t e = args.ids.row<const int32_t>(t)[slot];
      for (int64_t i = 0; i < inner; ++i)
        act[static_cast<size_t>(i)] =
            activate(product(args.gate, args.gate_scale, e, i, x), product(args.up, args.up_scale, e, i, x));
      const double weight = std::fabs(element(args.weights, t, slot));
      for (int64_t c = 0; c < hidden; ++c) {
        const Approximate d = product(args.down, args.down_scale, e, c, act);
        out[c] += weight * (d.error + sum_roundings * (std::fabs(d.value) + d.error));
      }
    }
  }
}

}  // namespace strata
