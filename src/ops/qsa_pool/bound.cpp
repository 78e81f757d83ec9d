#include <algorithm>
#include <cmath>
#include <vector>

#include "evidence/parity_case.h"
#include "ops/qsa_pool/qsa_pool.h"

namespace strata {
namespace {

// Half a unit in the last place of the largest value that `magnitude` bounds; nothing for f32, whose last rounding is
// already in the rotation's or the norm's.
double half_ulp(DType dtype, double magnitude) {
  if (dtype == DType::F32 || magnitude == 0) return 0;
  const int significand = dtype == DType::BF16 ? 8 : 11, least = dtype == DType::BF16 ? -126 : -14;
  int exponent = 0;
  std::frexp(magnitude, &exponent);  // magnitude < 2^exponent
  return std::ldexp(1.0, std::max(exponent - 1, least) - significand);
}

struct Key {
  std::vector<double> value, error;  // magnitudes of the f32 key before rotation, and by how much it may be off
};

Key normed_key(const QsaPoolArgs& args, int64_t block) {
  const int64_t width = args.raw.extent(1), ratio = args.tail.extent(0);
  std::vector<double> mean, off;
  double squares = 0, off_squares = 0;
  for (int64_t i = 0; i < width; ++i) {
    double sum = 0, magnitude = 0;
    for (int64_t p = block * ratio; p < (block + 1) * ratio; ++p) {
      const auto value = static_cast<double>(p < args.first ? args.tail.row<float>(p % ratio)[i]
                                                            : args.raw.row<float>(p - args.first)[i]);
      sum += value;
      magnitude += std::fabs(value);
    }
    mean.push_back(sum / static_cast<double>(ratio));
    off.push_back(gamma(static_cast<double>(ratio)) * magnitude / static_cast<double>(ratio));
    squares += mean.back() * mean.back() / static_cast<double>(width);
    off_squares += off.back() * off.back() / static_cast<double>(width);
  }
  const double root = std::sqrt(squares + static_cast<double>(args.eps)), moved_root = std::sqrt(off_squares);
  const double roundings = gamma(static_cast<double>(width / 16 + 7) / 2 + 4);
  Key key;
  for (size_t i = 0; i < mean.size(); ++i) {
    const double w = std::fabs(static_cast<double>(args.weight.f32()[i]));
    const double moved = w * (off[i] + std::fabs(mean[i]) * moved_root / root) / (root - moved_root);
    key.value.push_back(std::fabs(mean[i]) / root * w);
    key.error.push_back(moved + roundings * (key.value.back() + moved) + 0x1p-148);
  }
  return key;
}

void rotate(const QsaPoolArgs& args, int64_t block, Key& key) {
  const int64_t half = args.rope->rotary_dims() / 2;
  const auto magnitude = static_cast<double>(args.rope->magnitude);
  for (int64_t j = 0; j < half; ++j) {
    const bool split = args.rope->pairs == RopePairs::HalfSplit;
    const auto first = static_cast<size_t>(split ? j : 2 * j);
    const auto second = static_cast<size_t>(split ? j + half : 2 * j + 1);
    const auto angle = static_cast<double>(static_cast<float>(block * args.tail.extent(0)) *
                                           args.rope->frequency[static_cast<size_t>(j)]);
    const double c = std::fabs(magnitude * std::cos(angle)), s = std::fabs(magnitude * std::sin(angle));
    const double da = key.error[first], db = key.error[second];
    const double a = key.value[first] + da, b = key.value[second] + db;
    key.error[first] = c * da + s * db + gamma(4) * (a * c + b * s) + 0x1p-147;
    key.error[second] = s * da + c * db + gamma(4) * (a * s + b * c) + 0x1p-147;
  }
}

}  // namespace

void qsa_pool_bound(const QsaPoolArgs& args, double* out) {
  const int64_t width = args.raw.extent(1), ratio = args.tail.extent(0);
  const int64_t begin = args.first / ratio, end = (args.first + args.raw.extent(0)) / ratio;
  std::vector<double> exact(static_cast<size_t>((end - begin) * width));
  qsa_pool_oracle(args, exact.data());
  const double* value = exact.data();
  for (int64_t block = begin; block < end; ++block) {
    Key key = normed_key(args, block);
    rotate(args, block, key);
    for (double error : key.error) *out++ = error + half_ulp(args.pooled.dtype, std::fabs(*value++) + error);
  }
}

}  // namespace strata
