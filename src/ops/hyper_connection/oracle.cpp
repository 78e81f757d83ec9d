#include "ops/oracle.h"

#include <cmath>

#include "ops/hyper_connection/hyper_connection.h"

namespace strata {

void hyper_read_oracle(const HyperReadArgs& args, double* out) {
  const int64_t rows = args.normed.extent(0), streams = args.normed.extent(1), hidden = args.normed.extent(2);
  for (int64_t t = 0; t < rows; ++t)
    for (int64_t i = 0; i < hidden; ++i) {
      double sum = 0;
      for (int64_t s = 0; s < streams; ++s)
        sum += element(args.normed, t, s, i) / (1 + std::exp(-element(args.mix, t, s, i)));
      out[t * hidden + i] = sum / static_cast<double>(streams);
    }
}

void hyper_write_oracle(const HyperWriteArgs& args, double* out) {
  const int64_t rows = args.x.extent(0), streams = args.x.extent(1), hidden = args.x.extent(2);
  for (int64_t t = 0; t < rows; ++t)
    for (int64_t s = 0; s < streams; ++s)
      for (int64_t i = 0; i < hidden; ++i)
        out[(t * streams + s) * hidden + i] =
            element(args.x, t, s, i) + 2 / (1 + std::exp(-element(args.inject, t, s))) * element(args.block, t, i);
}

}  // namespace strata
