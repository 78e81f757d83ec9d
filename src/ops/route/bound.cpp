#include <vector>

#include "ops/oracle.h"
#include "ops/rounding.h"
#include "ops/route/route.h"

namespace strata {
namespace {

constexpr double kSmallestSum = 6.1e-5;

// One row: roundings count in units of u.
class RowBound {
 public:
  RowBound(const RouteArgs& args, int64_t t, const int32_t* ids) : args_(args), row_(t), ids_(ids) {
    best_ = element(args.logits, t, ids[0]);
    const int64_t experts = args.logits.extent(1), k = args.ids.extent(1);
    double spread = 0;
    for (int64_t e = 0; e < experts; ++e) {
      total_ += numerator(e);
      if (numerator(e) > 0) spread += numerator(e) * (best_ - element(args.logits, t, e));
    }
    total_roundings_ = spread / total_ + 4 + static_cast<double>(experts);
    double of_chosen = 0;
    for (int64_t i = 0; i < k; ++i) {
      chosen_ += numerator(ids[i]);
      if (numerator(ids[i]) > 0) of_chosen += numerator(ids[i]) * own_roundings(ids[i]);
    }
    chosen_roundings_ = of_chosen / chosen_ + static_cast<double>(k);
  }

  double of_slot(int64_t slot) const {
    const int64_t e = ids_[slot];
    const double p = numerator(e) / total_, scale = std::fabs(static_cast<double>(args_.scale));
    if (p == 0) return flush_of(p, 0, scale);
    double roundings = own_roundings(e) + 1;  // and the factor
    // The probabilities share one total: what it errs cancels in their ratios, unless the sum was clamped.
    const bool may_clamp = chosen_ / total_ < 1.01 * kSmallestSum;
    if (!args_.normalise || may_clamp) roundings += total_roundings_;
    if (args_.normalise) roundings += chosen_roundings_ + 1 + (may_clamp ? total_roundings_ + 1 : 0);
    const double weight = divided(p, scale);
    return gamma(roundings) * weight + flush_of(p, weight, scale) + kTiny * (divided(1, scale) + 1);
  }

 private:
  // A probability or a weight below the normal range may be 0.
  double flush_of(double p, double weight, double scale) const {
    return (p < 1.01 * kNormal ? kNormal * divided(1, scale) : 0) + (weight < 1.01 * kNormal ? kNormal : 0);
  }
  double numerator(int64_t e) const { return std::exp(element(args_.logits, row_, e) - best_); }
  // Exponent, exp and the division by the total.
  double own_roundings(int64_t e) const { return best_ - element(args_.logits, row_, e) + 4 + 1; }
  double divided(double p, double scale) const {
    return scale * (args_.normalise ? p / std::max(chosen_ / total_, kSmallestSum) : p);
  }

  const RouteArgs& args_;
  int64_t row_;
  const int32_t* ids_;
  double best_ = 0, total_ = 0, chosen_ = 0, total_roundings_ = 0, chosen_roundings_ = 0;
};

}  // namespace

void route_bound(const RouteArgs& args, double* out) {
  const int64_t rows = args.logits.extent(0), k = args.ids.extent(1);
  std::vector<int32_t> ids(static_cast<size_t>(rows * k));
  std::vector<double> weights(ids.size());
  route_oracle(args, ids.data(), weights.data());
  for (int64_t t = 0; t < rows; ++t) {
    const RowBound row(args, t, ids.data() + t * k);
    for (int64_t i = 0; i < k; ++i) *out++ = row.of_slot(i);
  }
}

}  // namespace strata
