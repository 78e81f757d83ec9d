#include <algorithm>
#include <cmath>
#include <vector>

#include "evidence/parity_case.h"
#include "gguf/quant.h"
#include "ops/matmul/activations.h"
#include "ops/weight_dot/rounded.h"

namespace strata {

std::vector<double> activations_of(const MatmulArgs& args) {
  const int64_t rows = args.x.extent(0), in = args.x.extent(1);
  const bool rounded = is_rounded(args.activations, args.weight.dtype, in);
  std::vector<double> all;
  all.reserve(static_cast<size_t>(rows * in));
  for (int64_t t = 0; t < rows; ++t) {
    const float* x = args.x.row<const float>(t);
    if (rounded) {
      const std::vector<double> row = rounded_to_int8(x, in);
      all.insert(all.end(), row.begin(), row.end());
    } else {
      all.insert(all.end(), x, x + in);
    }
  }
  return all;
}

namespace {

// Calls visit(weight row, row of x, magnitude of every weight) for every element of y.
template <class Visit>
void for_each_product(const MatmulArgs& args, bool minima, const Visit& visit) {
  const int64_t rows = args.x.extent(0), in = args.x.extent(1), count = args.weight.extent(0);
  std::vector<float> w(static_cast<size_t>(in));
  std::vector<double> magnitude(w.size());
  for (int64_t o = 0; o < count; ++o) {
    gguf::decoder(args.weight.dtype)(args.weight.row<const void>(o), w.data(), in);
    const std::vector<double> least =
        minima ? weight_minima(args.weight.dtype, args.weight.row<const void>(o), in) : std::vector<double>(w.size());
    for (size_t i = 0; i < w.size(); ++i)
      magnitude[i] = std::fabs(static_cast<double>(w[i]) + least[i]) + std::fabs(least[i]);
    for (int64_t t = 0; t < rows; ++t) visit(o, t, magnitude);
  }
}

}  // namespace

// gamma(in/16 + 7) of the element's own magnitude sum, one more where x is rounded; products below the normal range add
// 2^-149 each.
void matmul_bound(const MatmulArgs& args, double* out) {
  const int64_t in = args.x.extent(1), count = args.weight.extent(0);
  const bool rounded = is_rounded(args.activations, args.weight.dtype, in);
  const double roundings = gamma(static_cast<double>(in / 16 + (rounded ? 8 : 7)));
  const std::vector<double> x = activations_of(args);
  for_each_product(args, rounded, [&](int64_t o, int64_t t, const std::vector<double>& w) {
    double magnitude = 0;
    for (int64_t i = 0; i < in; ++i)
      magnitude += std::fabs(x[static_cast<size_t>(t * in + i)]) * w[static_cast<size_t>(i)];
    magnitude *= std::fabs(static_cast<double>(args.scale));
    if (!args.bias.empty()) magnitude += std::fabs(static_cast<double>(args.bias.f32()[o]));
    out[t * count + o] = roundings * magnitude + static_cast<double>(in + 2) * 0x1p-149;
  });
}

// Half a step of its block for every element of x.
void matmul_rounding(const MatmulArgs& args, double* out) {
  const int64_t rows = args.x.extent(0), in = args.x.extent(1), count = args.weight.extent(0);
  std::fill(out, out + rows * count, 0.0);
  if (!is_rounded(args.activations, args.weight.dtype, in)) return;
  std::vector<int8_t> q(static_cast<size_t>(in));
  std::vector<float> scales(static_cast<size_t>(rows * in / kRoundedBlock));
  for (int64_t t = 0; t < rows; ++t)
    round_to_int8(args.x.row<const float>(t), in, q.data(), scales.data() + t * (in / kRoundedBlock));
  for_each_product(args, false, [&](int64_t o, int64_t t, const std::vector<double>& w) {
    double sum = 0;
    for (int64_t i = 0; i < in; ++i) {
      const auto block = static_cast<size_t>((t * in + i) / kRoundedBlock);
      sum += w[static_cast<size_t>(i)] *
             (kRoundingSteps * static_cast<double>(scales[block]) + static_cast<double>(kSmallestRounded));
    }
    out[t * count + o] = std::fabs(static_cast<double>(args.scale)) * sum;
  });
}

}  // namespace strata
