#include "ops/qsa_score/qsa_score.h"

namespace strata {

void qsa_score_oracle(const QsaScoreArgs& args, double* out) {
  const int64_t rows = args.q.extent(0), heads = args.q.extent(1), dim = args.q.extent(2);
  for (int64_t t = 0; t < rows; ++t, out += args.scores.extent(1)) {
    for (int64_t b = 0; b < args.n_blocks.as<int32_t>()[t]; ++b) {
      const float* key = args.pooled.row<float>(b);
      out[b] = 0;
      for (int64_t h = 0; h < heads; ++h) {
        const float* q = args.q[t].row<float>(h);
        double dot = 0;
        for (int64_t i = 0; i < dim; ++i) dot += static_cast<double>(q[i]) * static_cast<double>(key[i]);
        if (!(dot <= 0)) out[b] += dot;  // relu that keeps NaN
      }
    }
  }
}

}  // namespace strata
