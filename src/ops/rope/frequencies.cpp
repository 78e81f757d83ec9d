#include <algorithm>
#include <cmath>
#include <numbers>

#include "ops/rope/rope.h"

namespace strata {
namespace {

void check(const RopeParams& params) {
  if (params.rotary_dims < 2 || params.rotary_dims % 2 != 0 || params.rotary_dims > 65536)
    argument_error("rope", "rotary dims " + std::to_string(params.rotary_dims) + " must be even, from 2 to 65536");
  if (!(params.base > 1) || !std::isfinite(params.base)) argument_error("rope", "the base must be above 1");
  if (!(params.factor > 0) || !std::isfinite(params.factor)) argument_error("rope", "the factor must be positive");
  if (params.scaling == RopeScaling::Yarn && !(params.original_context >= 1))
    argument_error("rope", "YaRN needs the original context length");
  if (params.scaling == RopeScaling::Yarn &&
      (!(params.beta_fast > 0 && params.beta_slow > 0) || !(params.ext >= 0 && params.ext <= 1) ||
       !(params.attention_factor >= 0) || !std::isfinite(params.attention_factor)))
    argument_error("rope", "YaRN needs positive betas, ext within 0 and 1 and a finite attention factor");
  for (float factor : params.pair_factors)
    if (!(factor > 0) || !std::isfinite(factor)) argument_error("rope", "frequency factors must be positive");
  const size_t half = static_cast<size_t>(params.rotary_dims) / 2;
  if (!params.pair_factors.empty() && params.pair_factors.size() != half)
    argument_error("rope", "needs one frequency factor per pair (" + std::to_string(half) + "), got " +
                               std::to_string(params.pair_factors.size()));
}

// Share of pair j that keeps its frequency under YaRN.
double yarn_ramp(const RopeParams& params, int j) {
  const double dims = params.rotary_dims;
  auto pair_of = [&](double turns) {
    return dims * std::log(params.original_context / (2 * std::numbers::pi * turns)) / (2 * std::log(params.base));
  };
  const double low = std::max(0.0, std::floor(pair_of(params.beta_fast)));
  const double high = std::min(dims - 1, std::ceil(pair_of(params.beta_slow)));
  return 1 - std::clamp((j - low) / std::max(0.001, high - low), 0.0, 1.0);
}

}  // namespace

RopeFrequencies::RopeFrequencies(const RopeParams& params) : pairs(params.pairs) {
  check(params);
  const int half = params.rotary_dims / 2;
  frequency.resize(static_cast<size_t>(half));
  for (int j = 0; j < half; ++j) {
    double f = std::pow(params.base, -2.0 * j / params.rotary_dims);
    if (!params.pair_factors.empty()) f /= params.pair_factors[static_cast<size_t>(j)];
    if (params.scaling == RopeScaling::Linear) f /= params.factor;
    if (params.scaling == RopeScaling::Yarn) {
      const double kept = params.ext * yarn_ramp(params, j);
      f = f / params.factor * (1 - kept) + f * kept;
    }
    frequency[static_cast<size_t>(j)] = static_cast<float>(f);
  }
  if (params.scaling != RopeScaling::Yarn) return;
  if (params.attention_factor > 0)
    magnitude = static_cast<float>(params.attention_factor);
  else if (params.ext != 0 && params.factor > 1)
    magnitude = static_cast<float>(1 + 0.1 * std::log(params.factor));
}

void RopeFrequencies::angles(int64_t position, float* cos_out, float* sin_out) const {
  for (size_t j = 0; j < frequency.size(); ++j) {
    const float angle = static_cast<float>(position) * frequency[j];  // f32, as the models were trained
    cos_out[j] = static_cast<float>(std::cos(static_cast<double>(angle))) * magnitude;
    sin_out[j] = static_cast<float>(std::sin(static_cast<double>(angle))) * magnitude;
  }
}

}  // namespace strata
