#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ops/sparse_attention/sparse_attention.h"

namespace strata {

void sparse_attention_oracle(const SparseAttentionArgs& args, double* out) {
  const int64_t rows = args.q.extent(0), heads = args.q.extent(1), dim = args.q.extent(2);
  const int64_t group = heads / args.k.extent(1);
  for (int64_t t = 0; t < rows; ++t) {
    const int32_t* ids = args.ids.row<int32_t>(t);
    const int64_t count = args.counts.as<int32_t>()[t];
    for (int64_t h = 0; h < heads; ++h, out += dim) {
      const float* q = args.q[t].row<float>(h);
      std::vector<double> weight(static_cast<size_t>(count));
      double largest = -std::numeric_limits<double>::infinity();
      for (int64_t n = 0; n < count; ++n) {
        const float* k = args.k[ids[n]].row<float>(h / group);
        double dot = 0;
        for (int64_t i = 0; i < dim; ++i) dot += static_cast<double>(q[i]) * static_cast<double>(k[i]);
        const double score = static_cast<double>(args.scale) * dot;
        weight[static_cast<size_t>(n)] = score;
        if (score > largest || std::isnan(score)) largest = score;  // a NaN stays
      }
      std::fill(out, out + dim, 0.0);
      if (largest == -std::numeric_limits<double>::infinity()) continue;  // nothing has a weight
      double sum = 0;
      for (double& w : weight) sum += w = std::exp(w - largest);
      for (int64_t n = 0; n < count; ++n)
        for (int64_t i = 0; i < dim; ++i)
          out[i] += weight[static_cast<size_t>(n)] / sum * static_cast<double>(args.v[ids[n]].row<float>(h / group)[i]);
    }
  }
}

}  // namespace strata
