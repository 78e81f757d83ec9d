#include <algorithm>
#include <cmath>
#include <numbers>

#include "ops/rope/rope.h"

namespace strata {

double rope_frequencies_oracle(const RopeParams& params, double* out) {
  const double dims = params.rotary_dims;
  const double log_base = std::log(params.base);
  auto pair_of_turns = [&](double turns) {
    return dims * std::log(params.original_context / (2 * std::numbers::pi * turns)) / (2 * log_base);
  };
  double low = 0, high = 0;
  if (params.scaling == RopeScaling::Yarn) {
    low = std::max(0.0, std::floor(pair_of_turns(params.beta_fast)));
    high = std::min(dims - 1, std::ceil(pair_of_turns(params.beta_slow)));
  }
  for (int j = 0; j < params.rotary_dims / 2; ++j) {
    double frequency = std::pow(params.base, -2.0 * j / dims);
    if (!params.pair_factors.empty()) frequency /= static_cast<double>(params.pair_factors[static_cast<size_t>(j)]);
    if (params.scaling == RopeScaling::Linear) frequency /= params.factor;
    if (params.scaling == RopeScaling::Yarn) {
      const double ramp = 1 - std::clamp((j - low) / std::max(0.001, high - low), 0.0, 1.0);
      const double kept = params.ext * ramp;
      frequency = frequency / params.factor * (1 - kept) + frequency * kept;
    }
    out[j] = frequency;
  }
  if (params.scaling != RopeScaling::Yarn) return 1;
  if (params.attention_factor > 0) return params.attention_factor;
  return params.ext != 0 && params.factor > 1 ? 1 + 0.1 * std::log(params.factor) : 1;
}

void rope_oracle(const RopeArgs& args, double* out) {
  const int64_t rows = args.x.extent(0), heads = args.x.extent(1), dim = args.x.extent(2), half = args.cos.extent(1);
  for (int64_t t = 0; t < rows; ++t) {
    for (int64_t h = 0; h < heads; ++h, out += dim) {
      const float* x = args.x[t].row<float>(h);
      for (int64_t i = 0; i < dim; ++i) out[i] = static_cast<double>(x[i]);
      for (int64_t j = 0; j < half; ++j) {
        const bool split = args.pairs == RopePairs::HalfSplit;
        const int64_t first = split ? j : 2 * j, second = split ? j + half : 2 * j + 1;
        const double cosine = static_cast<double>(args.cos.row<float>(t)[j]);
        const double sine = static_cast<double>(args.sin.row<float>(t)[j]);
        const double a = static_cast<double>(x[first]), b = static_cast<double>(x[second]);
        out[first] = a * cosine - b * sine;
        out[second] = a * sine + b * cosine;
      }
    }
  }
}

}  // namespace strata
