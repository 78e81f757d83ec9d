#include "ops/qsa_score/operands.h"

namespace strata {
namespace {

double exact_score(const Operands<double>& operands) {
  const auto& [q, key] = operands;
  double score = 0;
  for (size_t head = 0; head < q.size(); head += key.size()) {
    double dot = 0;
    for (size_t i = 0; i < key.size(); ++i) dot += q[head + i] * key[i];
    if (!(dot <= 0)) score += dot;  // relu that keeps NaN
  }
  return score;
}

}  // namespace

void qsa_score_oracle(const QsaScoreArgs& args, double* out) {
  Operands<double> operands(args);
  for (int64_t t = 0; t < args.q.extent(0); ++t, out += args.scores.extent(1)) {
    const int64_t cells = args.n_kv.as<int32_t>()[t], blocks = cells / args.ratio;
    load_query(args, t, operands.query.data());
    for (int64_t b = 0; b < blocks; ++b) {
      load_key(args, args.pages.at(args.pooled, b), operands.key.data());
      out[b] = exact_score(operands);
    }
    if (args.dead.empty()) continue;
    load_key(args, args.dead.data, operands.key.data());
    out[blocks] = exact_score(operands);
    if (cells % args.ratio != 0) out[blocks] += 1e9;
  }
}

}  // namespace strata
