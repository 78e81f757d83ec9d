#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ops/attention/attention.h"
#include "ops/attention/cell_reader.h"
#include "ops/attention/softmax.h"

namespace strata {

// The plain formula, no splits.
void cell_attention_oracle(const CellAttention& args, double* out, double* lse) {
  const int64_t rows = args.rows(), heads = args.heads(), dim = args.dim();
  constexpr double kNothing = -std::numeric_limits<double>::infinity();
  CellReader keys(args.k, args.k_pages), values(args.v, args.v_pages);
  for (int64_t t = 0; t < rows; ++t)
    for (int64_t h = 0; h < heads; ++h, out += dim) {
      const int64_t cells = args.count(t), kv_head = h / args.group();
      const float* q = args.q[t].row<float>(h);
      std::vector<double> weight(static_cast<size_t>(cells));
      double largest = kNothing, sum = 0;
      for (int64_t n = 0; n < cells; ++n) {
        const float* k = keys.read(args.cell(t, n), kv_head);
        double dot = 0;
        for (int64_t i = 0; i < dim; ++i) dot += static_cast<double>(q[i]) * static_cast<double>(k[i]);
        const double score = static_cast<double>(args.scale) * dot;
        weight[static_cast<size_t>(n)] = score;
        if (score > largest || std::isnan(score)) largest = score;  // a NaN stays
      }
      std::fill(out, out + dim, 0.0);
      if (lse != nullptr) lse[t * heads + h] = largest;
      if (largest == kNothing) continue;  // nothing has a weight
      for (double& w : weight) sum += w = std::exp(w - largest);
      for (int64_t n = 0; n < cells; ++n) {
        const float* v = values.read(args.cell(t, n), kv_head);
        const double share = weight[static_cast<size_t>(n)] / sum;
        for (int64_t i = 0; i < dim; ++i) out[i] += share * static_cast<double>(v[i]);
      }
      if (lse != nullptr) lse[t * heads + h] += std::log(sum);
    }
}

void attention_oracle(const AttentionArgs& args, double* out, double* lse) {
  cell_attention_oracle(cells_of(args), out, lse);
}

}  // namespace strata
