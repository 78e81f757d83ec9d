#include <cmath>

#include "evidence/parity_case.h"
#include "ops/qsa_score/operands.h"

namespace strata {
namespace {

struct Limit {
  double magnitude, bound;
};

// gamma of the longest way of a product through any order of summation, times the magnitudes of the products, and what
// an arm may flush below the normal range.
Limit score_limit(DType form, const Operands<double>& operands) {
  const auto& [q, key] = operands;
  const size_t d = key.size();
  double magnitude = 0, flushed = 0;
  for (size_t k = 0; k < q.size(); ++k) {
    const double a = std::fabs(q[k]), b = std::fabs(key[k % d]);
    magnitude += a * b;
    if (form == DType::BF16 && std::fmin(a, b) < 0x1p-126) flushed += a * b;
  }
  const auto additions = static_cast<double>(d - 1 + q.size() / d - 1), terms = static_cast<double>(q.size());
  if (form == DType::F16) return {magnitude, gamma(additions) * magnitude};
  if (form == DType::BF16) return {magnitude, gamma(additions) * magnitude + flushed + terms * 0x1p-126};
  return {magnitude, gamma(additions + 1) * magnitude + terms * 0x1p-149};
}

}  // namespace

void qsa_score_bound(const QsaScoreArgs& args, double* out) {
  const DType form = args.pooled.dtype;
  Operands<double> operands(args);
  for (int64_t t = 0; t < args.q.extent(0); ++t, out += args.scores.extent(1)) {
    const int64_t cells = args.n_kv.as<int32_t>()[t], blocks = cells / args.ratio;
    load_query(args, t, operands.query.data());
    for (int64_t b = 0; b < blocks; ++b) {
      load_key(args, args.pages.at(args.pooled, b), operands.key.data());
      out[b] = score_limit(form, operands).bound;
    }
    if (args.dead.empty()) continue;
    load_key(args, args.dead.data, operands.key.data());
    const Limit dead = score_limit(form, operands);
    out[blocks] = dead.bound;
    // The sum with 1e9 rounds once more; a score lies below its magnitudes.
    if (cells % args.ratio != 0) out[blocks] += kUnitRoundoff * (1e9 + dead.magnitude + dead.bound);
  }
}

}  // namespace strata
