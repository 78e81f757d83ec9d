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

// round_to_int8 of one block in float64: an f32 scale differs from it by a rounding, which bounds count.
void round_block(const double* x, double* out) {
  double largest = 0;
  bool finite = true;
  for (int64_t i = 0; i < kRoundedBlock; ++i) {
    finite = finite && std::isfinite(x[i]);
    largest = std::fmax(largest, std::fabs(x[i]));
  }
  const double scale = !finite ? NAN : largest < static_cast<double>(kSmallestRounded) ? 0 : largest / 127;
  for (int64_t i = 0; i < kRoundedBlock; ++i) out[i] = scale == 0 ? 0 : std::nearbyint(x[i] / scale) * scale;
}

bool rounds(const ExpertsArgs& args, const Tensor& weights) {
  return is_rounded(args.activations, weights.dtype, weights.extent(2));
}

// Row t of x as a matrix multiplies it.
std::vector<double> row_of(const ExpertsArgs& args, const Tensor& weights, int64_t t) {
  const float* x = args.x.row<const float>(t);
  const int64_t hidden = args.x.extent(1);
  return rounds(args, weights) ? rounded_to_int8(x, hidden) : std::vector<double>(x, x + hidden);
}

// What is activated as a matrix multiplies it: rounded in float64.
std::vector<double> as_multiplied(const ExpertsArgs& args, const Tensor& weights, const std::vector<double>& x) {
  if (!rounds(args, weights)) return x;
  std::vector<double> values(x.size());
  for (size_t begin = 0; begin < x.size(); begin += static_cast<size_t>(kRoundedBlock))
    round_block(x.data() + begin, values.data() + begin);
  return values;
}

}  // namespace

void experts_oracle(const ExpertsArgs& args, double* out) {
  const int64_t rows = args.x.extent(0), hidden = args.x.extent(1), k = args.ids.extent(1);
  const int64_t inner = args.gate.extent(1);
  for (int64_t t = 0; t < rows; ++t) {
    std::vector<double> act(static_cast<size_t>(inner));
    const std::vector<double> gate_x = row_of(args, args.gate, t), up_x = row_of(args, args.up, t);
    for (int64_t i = 0; i < hidden; ++i) out[t * hidden + i] = 0;
    for (int64_t slot = 0; slot < k; ++slot) {
      const int64_t expert = args.ids.row<int32_t>(t)[slot];
      for (int64_t i = 0; i < inner; ++i) {
        const double gate = product(args.gate, args.gate_scale, expert, i, gate_x);
        act[static_cast<size_t>(i)] = gate / (1 + std::exp(-gate)) * product(args.up, args.up_scale, expert, i, up_x);
      }
      act = as_multiplied(args, args.down, act);
      for (int64_t i = 0; i < hidden; ++i)
        out[t * hidden + i] += element(args.weights, t, slot) * product(args.down, args.down_scale, expert, i, act);
    }
  }
}

}  // namespace strata
