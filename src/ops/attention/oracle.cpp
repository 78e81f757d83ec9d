#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ops/attention/attention.h"

namespace strata {

void attention_oracle(const AttentionArgs& args, double* out, double* lse) {
  const int64_t rows = args.q.extent(0), heads = args.q.extent(1), dim = args.q.extent(2);
  const int64_t group = heads / args.k.extent(1);
  for (int64_t t = 0; t < rows; ++t) {
    const int64_t cells = args.n_kv.as<int32_t>()[t];
    for (int64_t h = 0; h < heads; ++h, out += dim) {
      const float* q = args.q[t].row<float>(h);
      std::vector<double> weight(static_cast<size_t>(cells));
      double largest = -std::numeric_limits<double>::infinity();
      for (int64_t c = 0; c < cells; ++c) {
        const float* k = args.k[c].row<float>(h / group);
        double dot = 0;
        for (int64_t i = 0; i < dim; ++i) dot += static_cast<double>(q[i]) * static_cast<double>(k[i]);
        const double score = static_cast<double>(args.scale) * dot;
        weight[static_cast<size_t>(c)] = score;
        if (score > largest || std::isnan(score)) largest = score;  // a NaN stays
      }
      std::fill(out, out + dim, 0.0);
      if (lse != nullptr) lse[t * heads + h] = largest;
      if (largest == -std::numeric_limits<double>::infinity()) continue;  // nothing has a weight
      double sum = 0;
      for (double& w : weight) sum += w = std::exp(w - largest);
      for (int64_t c = 0; c < cells; ++c)
        for (int64_t i = 0; i < dim; ++i)
          out[i] += weight[static_cast<size_t>(c)] / sum * static_cast<double>(args.v[c].row<float>(h / group)[i]);
      if (lse != nullptr) lse[t * heads + h] += std::log(sum);
    }
  }
}

}  // namespace strata
