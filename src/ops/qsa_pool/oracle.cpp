#include <cmath>
#include <vector>

#include "ops/qsa_pool/qsa_pool.h"

namespace strata {

void qsa_pool_oracle(const QsaPoolArgs& args, double* out) {
  const int64_t rows = args.raw.extent(0), width = args.raw.extent(1), ratio = args.tail.extent(0);
  const int half = args.rope->rotary_dims() / 2;
  std::vector<double> key(static_cast<size_t>(width));
  for (int64_t block = args.first / ratio; (block + 1) * ratio <= args.first + rows; ++block, out += width) {
    double squares = 0;
    for (int64_t i = 0; i < width; ++i) {
      double sum = 0;
      for (int64_t p = block * ratio; p < (block + 1) * ratio; ++p)
        sum += static_cast<double>(p < args.first ? args.tail.row<float>(p % ratio)[i]
                                                  : args.raw.row<float>(p - args.first)[i]);
      key[static_cast<size_t>(i)] = sum / static_cast<double>(ratio);
      squares += key[static_cast<size_t>(i)] * key[static_cast<size_t>(i)];
    }
    const double root = std::sqrt(squares / static_cast<double>(width) + static_cast<double>(args.eps));
    for (int64_t i = 0; i < width; ++i)
      out[i] = key[static_cast<size_t>(i)] / root * static_cast<double>(args.weight.f32()[i]);
    for (int j = 0; j < half; ++j) {
      const bool split = args.rope->pairs == RopePairs::HalfSplit;
      const int first = split ? j : 2 * j, second = split ? j + half : 2 * j + 1;
      // The f32 product is the angle by definition (rope.h); its cosine and sine are exact here.
      const float angle = static_cast<float>(block * ratio) * args.rope->frequency[static_cast<size_t>(j)];
      const double magnitude = static_cast<double>(args.rope->magnitude);
      const double cosine = magnitude * std::cos(static_cast<double>(angle));
      const double sine = magnitude * std::sin(static_cast<double>(angle));
      const double a = out[first], b = out[second];
      out[first] = a * cosine - b * sine;
      out[second] = a * sine + b * cosine;
    }
  }
}

}  // namespace strata
