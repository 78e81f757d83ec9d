#include "ops/oracle.h"

#include <algorithm>
#include <cmath>

#include "ops/ngram_embedding/ngram_embedding.h"

namespace strata {

void ngram_gate_oracle(const NgramGateArgs& args, double* out) {
  const int64_t rows = args.key.extent(0), streams = args.key.extent(1), hidden = args.key.extent(2);
  for (int64_t t = 0; t < rows; ++t)
    for (int64_t s = 0; s < streams; ++s) {
      double dot = 0;
      for (int64_t i = 0; i < hidden; ++i) dot += element(args.key, t, s, i) * element(args.query, t, s, i);
      const double score = dot / std::sqrt(static_cast<double>(hidden));
      const double sign = score > 0 ? 1 : (score < 0 ? -1 : 0);
      const double gate = 1 / (1 + std::exp(-sign * std::sqrt(std::max(std::fabs(score), 1e-6))));
      for (int64_t i = 0; i < hidden; ++i) out[(t * streams + s) * hidden + i] = gate * element(args.value, t, i);
    }
}

}  // namespace strata
