#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "evidence/parity_case.h"
#include "ops/attention/attention.h"
#include "ops/attention/cell_reader.h"
#include "ops/attention/softmax.h"

namespace strata {
namespace {

constexpr double kU = kUnitRoundoff, kTiny = 0x1p-149, kNothing = -std::numeric_limits<double>::infinity();

struct Score {
  double value, error;
};

// scale · q·k with the error that README.md gives it. A dot product with a single term has no additions, and a product
// that f32 holds has no error.
Score score_of(const float* q, const float* k, int64_t dim, double scale) {
  double dot = 0, magnitude = 0;
  int64_t terms = 0;
  for (int64_t i = 0; i < dim; ++i) {
    const double term = static_cast<double>(q[i]) * static_cast<double>(k[i]);
    terms += term != 0;
    dot += term;
    magnitude += std::fabs(term);
  }
  auto off = [](double x) { return std::fabs(x - static_cast<double>(static_cast<float>(x))); };
  const double value = scale * dot, size = std::fabs(scale) * magnitude;
  if (terms <= 1 && off(dot) == 0) return {value, off(value)};
  return {value, gamma(static_cast<double>(dim / 16 + 6)) * size + static_cast<double>(dim + 1) * kTiny};
}

class RowBound {
 public:
  RowBound(const CellAttention& args, CellReader& keys, CellReader& values)
      : args_(args), keys_(keys), values_(values) {}

  void compute(int64_t row, int64_t head, double* out, double* lse) {
    const int64_t cells = args_.count(row), dim = args_.dim(), kv_head = head / args_.group();
    std::fill(out, out + dim, 0.0);
    if (lse != nullptr) *lse = 0;
    read_scores(row, head, cells, kv_head);
    if (best_ == kNothing) return;
    const double chain = roundings(cells), flushed = std::exp(-87.0);
    double total = 0, total_error = 0;
    std::vector<double> sum(static_cast<size_t>(dim), 0.0), error = sum, largest = sum;
    for (int64_t n = 0; n < cells; ++n) {
      const Score& score = scores_[static_cast<size_t>(n)];
      if (score.value == kNothing) continue;  // no weight, no error
      const double weight = std::exp(score.value - best_), gap = best_ - score.value + 2 * worst_;
      const double weight_error = weight * std::expm1(score.error + kU * gap + kU * chain) + flushed;
      total += weight;
      total_error += weight_error;
      const float* v = values_.read(args_.cell(row, n), kv_head);
      for (int64_t i = 0; i < dim; ++i) {
        const auto at = static_cast<size_t>(i);
        const double value = static_cast<double>(v[i]), size = std::fabs(value);
        sum[at] += weight * value;
        error[at] += weight_error * size + 3 * kTiny;
        largest[at] = std::max(largest[at], size);
      }
    }
    const bool useful = total_error < total;
    for (int64_t i = 0; i < dim; ++i) {
      const auto at = static_cast<size_t>(i);
      const double mean = std::fabs(sum[at]) / total;
      const double derived = (error[at] + mean * total_error) / (total - total_error) + 3.01 * kU * mean + kTiny;
      const double range = 2.01 * largest[at];  // a mean stays among its values
      out[i] = useful ? std::min(derived, range) : range;
    }
    if (lse == nullptr) return;
    const double exact = best_ + std::log(total);
    *lse = useful ? -std::log1p(-total_error / total) + 1.01 * kU * std::fabs(exact) + kTiny
                  : std::numeric_limits<double>::infinity();
  }

 private:
  void read_scores(int64_t row, int64_t head, int64_t cells, int64_t kv_head) {
    const float* q = args_.q[row].row<const float>(head);
    scores_.resize(static_cast<size_t>(cells));
    best_ = kNothing;
    worst_ = 0;
    for (int64_t n = 0; n < cells; ++n) {
      Score& score = scores_[static_cast<size_t>(n)];
      score = score_of(q, keys_.read(args_.cell(row, n), kv_head), args_.dim(), static_cast<double>(args_.scale));
      if (score.value == kNothing) continue;
      best_ = std::max(best_, score.value);
      worst_ = std::max(worst_, score.error);
    }
  }

  // Units of u on the way of a weight: 4 for each exponential, the sums within a split, the merges.
  double roundings(int64_t cells) const {
    const int64_t splits = (cells + kSplit - 1) / kSplit;
    double maximum = kNothing;
    int64_t exponentials = 2;
    for (int64_t split = 0; split < splits; ++split) {
      double own = kNothing;
      for (int64_t n = split * kSplit; n < std::min(cells, (split + 1) * kSplit); ++n)
        own = std::max(own, scores_[static_cast<size_t>(n)].value);
      exponentials += split > 0 && own > maximum - 2 * worst_;  // may raise the running maximum
      maximum = std::max(maximum, own);
    }
    return static_cast<double>(4 * exponentials + std::min(cells, kSplit) + 1 + 2 * (splits - 1));
  }

  const CellAttention& args_;
  CellReader &keys_, &values_;
  std::vector<Score> scores_;
  double best_ = 0, worst_ = 0;  // score, error of a score
};

}  // namespace

void cell_attention_bound(const CellAttention& args, double* out, double* lse) {
  CellReader keys(args.k, args.k_pages), values(args.v, args.v_pages);
  RowBound bound(args, keys, values);
  for (int64_t t = 0; t < args.rows(); ++t)
    for (int64_t h = 0; h < args.heads(); ++h) {
      const int64_t at = t * args.heads() + h;
      bound.compute(t, h, out + at * args.dim(), lse == nullptr ? nullptr : lse + at);
    }
}

void attention_bound(const AttentionArgs& args, double* out, double* lse) {
  cell_attention_bound(cells_of(args), out, lse);
}

}  // namespace strata
