#include "ops/hyper_connection/hyper_connection.h"
#include "ops/oracle.h"
#include "ops/rounding.h"

namespace strata {

void hyper_read_bound(const HyperReadArgs& args, double* out) {
  const int64_t rows = args.normed.extent(0), streams = args.normed.extent(1), hidden = args.normed.extent(2);
  const auto n = static_cast<double>(streams);
  for (int64_t t = 0; t < rows; ++t)
    for (int64_t i = 0; i < hidden; ++i) {
      double error = 0;
      for (int64_t s = 0; s < streams; ++s) {
        const double mix = element(args.mix, t, s, i), normed = std::fabs(element(args.normed, t, s, i));
        const double term = sigmoid(mix) * normed;
        error += gamma(activation_roundings(mix) + n + 2) * term + (sigmoid_flush(mix) + kTiny) * normed + kTiny;
      }
      *out++ = error / n + kTiny;
    }
}

void hyper_write_bound(const HyperWriteArgs& args, double* out) {
  const int64_t rows = args.x.extent(0), streams = args.x.extent(1), hidden = args.x.extent(2);
  for (int64_t t = 0; t < rows; ++t)
    for (int64_t s = 0; s < streams; ++s)
      for (int64_t i = 0; i < hidden; ++i) {
        const double inject = element(args.inject, t, s), block = element(args.block, t, i);
        const double term = 2 * sigmoid(inject) * block;
        const double error = gamma(activation_roundings(inject) + 1) * std::fabs(term) +
                             2 * (sigmoid_flush(inject) + kTiny) * std::fabs(block) + kTiny;
        *out++ = error + gamma(1) * (std::fabs(element(args.x, t, s, i) + term) + error);
      }
}

}  // namespace strata
