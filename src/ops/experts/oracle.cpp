#include "ops/oracle.h"

#include <cmath>
#include <vector>

#include "gguf/quant.h"
#include "ops/experts/experts.h"

namespace strata {
namespace {

// Row `row` of expert `expert` times x, times the expert's scale. The decoded f32 values are the weights.
double product(const Tensor& weight, const Tensor& scale, int64_t expert, int64_t row, const std::vector<double>& x) {
  std::vector<float> decoded(x.size());
  const char* blocks = static_cast<const char*>(weight.data) + expert * weight.stride(0) + row * weight.stride(1);
  gguf::decoder(weight.dtype)(blocks, decoded.data(), static_cast<int64_t>(decoded.size()));
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += static_cast<double>(decoded[i]) * x[i];
  return scale.empty() ? sum : sum * element(scale, expert);
}

}  // namespace

void experts_oracle(const ExpertsArgs& args, double* out) {
  const int64_t rows = args.x.extent(0), hidden = args.x.extent(1), k = args.ids.extent(1);
  const int64_t inner = args.gate.extent(1);
  for (int64_t t = 0; t < rows; ++t) {
    std::vector<double> x(static_cast<size_t>(hidden)), act(static_cast<size_t>(inner));
    for (int64_t i = 0; i < hidden; ++i) x[static_cast<size_t>(i)] = element(args.x, t, i);
    for (int64_t i = 0; i < hidden; ++i) out[t * hidden + i] = 0;
    for (int64_t slot = 0; slot < k; ++slot) {
      const int64_t expert = args.ids.row<int32_t>(t)[slot];
      for (int64_t i = 0; i < inner; ++i) {
        const double gate = product(args.gate, args.gate_scale, expert, i, x);
        act[static_cast<size_t>(i)] = gate / (1 + std::exp(-gate)) * product(args.up, args.up_scale, expert, i, x);
      }
      for (int64_t i = 0; i < hidden; ++i)
        out[t * hidden + i] += element(args.weights, t, slot) * product(args.down, args.down_scale, expert, i, act);
    }
  }
}

}  // namespace strata
