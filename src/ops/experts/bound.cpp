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
                    const std::vector<Approximate>& x, bool rounded) {
  std::vector<float> w(x.size());
  const auto n = static_cast<int64_t>(x.size());
  gguf::decoder(weight.dtype)(weight[expert].row<const void>(row), w.data(), n);
  const std::vector<double> least =
      rounded ? weight_minima(weight.dtype, weight[expert].row<const void>(row), n) : std::vector<double>(x.size());
  double sum = 0, magnitude = 0, carried = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double wi = static_cast<double>(w[i]);
    sum += wi * x[i].value;
    magnitude += (std::fabs(wi + least[i]) + std::fabs(least[i])) * (std::fabs(x[i].value) + x[i].error);
    carried += std::fabs(wi) * x[i].error;
  }
  const double factor = scale.empty() ? 1 : element(scale, expert);
  const double error =
      gamma(dot_roundings(n) + (rounded ? 2 : 1)) * magnitude + carried + static_cast<double>(n) * kTiny;
  return {factor * sum, std::fabs(factor) * error + kTiny};
}

// silu(g) · h with the errors of both.
Approximate activate(const Approximate& g, const Approximate& h) {
  const double s = silu(g.value), of_silu = silu_error(g.value, g.error);
  const double carried = of_silu * (std::fabs(h.value) + h.error) + std::fabs(s) * h.error;
  return {s * h.value, carried + gamma(1) * (std::fabs(s * h.value) + carried) + kTiny};
}

// What is activated as a matrix multiplies it: rounded to int8 in blocks of 32. The scale errs as the largest element
// does; an element that may be on the other side of the middle between two steps may be a step away, others follow the
// scale.
std::vector<Approximate> as_multiplied(const std::vector<Approximate>& x, bool rounded) {
  if (!rounded) return x;
  std::vector<Approximate> out(x.size());
  const auto block = static_cast<size_t>(kRoundedBlock);
  for (size_t begin = 0; begin < x.size(); begin += block) {
    double largest = 0, error = 0;
    bool finite = true;
    for (size_t i = begin; i < begin + block; ++i) {
      finite = finite && std::isfinite(x[i].value);
      largest = std::max(largest, std::fabs(x[i].value));
      error = std::max(error, x[i].error);
    }
    const auto smallest = static_cast<double>(kSmallestRounded);
    const double scale = largest / 127, scale_error = error / 127 + 2 * kUnitRoundoff * (scale + error / 127) + kTiny;
    for (size_t i = begin; i < begin + block; ++i) {
      if (!finite) {
        out[i] = {NAN, 0};
      } else if (largest < smallest) {
        out[i] = {0, largest + error < smallest ? 0 : std::fabs(x[i].value) + x[i].error};
      } else if (largest - error < smallest) {
        out[i] = {std::nearbyint(x[i].value / scale) * scale, 2 * (std::fabs(x[i].value) + x[i].error + scale)};
      } else {
        const double steps = x[i].value / scale, whole = std::nearbyint(steps);
        const double off = (x[i].error + std::fabs(steps) * scale_error) / std::max(scale - scale_error, kTiny) +
                           gamma(3) * std::fabs(steps);
        const bool sure = std::fabs(steps - whole) + off < 0.5;
        out[i] = {whole * scale, std::fabs(whole) * scale_error + (sure ? 0 : (1 + off) * (scale + scale_error))};
      }
    }
  }
  return out;
}

bool rounds(const ExpertsArgs& args, const Tensor& weights) {
  return is_rounded(args.activations, weights.dtype, weights.extent(2));
}

// Row t of x as a matrix multiplies it: exactly rounded, where it is.
std::vector<Approximate> row_of(const ExpertsArgs& args, bool rounded, int64_t t) {
  const float* x = args.x.row<const float>(t);
  const int64_t hidden = args.x.extent(1);
  const std::vector<double> values = rounded ? rounded_to_int8(x, hidden) : std::vector<double>(x, x + hidden);
  std::vector<Approximate> row;
  row.reserve(values.size());
  for (double value : values) row.push_back({value, 0});
  return row;
}

}  // namespace

void experts_bound(const ExpertsArgs& args, double* out) {
  const int64_t rows = args.x.extent(0), hidden = args.x.extent(1), k = args.ids.extent(1);
  const int64_t inner = args.gate.extent(1);
  const bool gate_rounds = rounds(args, args.gate), up_rounds = rounds(args, args.up);
  const bool down_rounds = rounds(args, args.down);
  const double sum_roundings = gamma(static_cast<double>(k));
  for (int64_t t = 0; t < rows; ++t, out += hidden) {
    std::vector<Approximate> act(static_cast<size_t>(inner));
    const std::vector<Approximate> gate_x = row_of(args, gate_rounds, t), up_x = row_of(args, up_rounds, t);
    std::fill(out, out + hidden, static_cast<double>(k) * kTiny);
    for (int64_t slot = 0; slot < k; ++slot) {
      const int64_t e = args.ids.row<const int32_t>(t)[slot];
      for (int64_t i = 0; i < inner; ++i)
        act[static_cast<size_t>(i)] = activate(product(args.gate, args.gate_scale, e, i, gate_x, gate_rounds),
                                               product(args.up, args.up_scale, e, i, up_x, up_rounds));
      act = as_multiplied(act, down_rounds);
      const double weight = std::fabs(element(args.weights, t, slot));
      for (int64_t c = 0; c < hidden; ++c) {
        const Approximate d = product(args.down, args.down_scale, e, c, act, down_rounds);
        out[c] += weight * (d.error + sum_roundings * (std::fabs(d.value) + d.error));
      }
    }
  }
}

}  // namespace strata
