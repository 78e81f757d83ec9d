#include "measure/divergence.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "evidence/statistics.h"
#include "measure/rows.h"

namespace strata {
namespace {

constexpr int64_t kRowsAtATime = 64;

// Of a mean over samples that deviate so.
std::optional<double> standard_error(double deviation, size_t samples) {
  if (samples < 2) return std::nullopt;
  return deviation / std::sqrt(static_cast<double>(samples));
}

// Of the means of a and b.
std::optional<double> covariance_of_means(std::span<const double> a, std::span<const double> b) {
  if (a.size() < 2) return std::nullopt;
  const double mean_a = mean(a), mean_b = mean(b), count = static_cast<double>(a.size());
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - mean_a) * (b[i] - mean_b);
  return sum / (count - 1) / count;
}

Distribution distribution_of(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  Distribution spread;
  if (samples.empty()) return spread;
  spread.maximum = samples.back();
  spread.minimum = samples.front();
  spread.median = quantile(samples, 0.5);
  spread.quarter = quantile(samples, 0.25);
  spread.three_quarters = quantile(samples, 0.75);
  for (size_t i = 0; i < kTailShares.size(); ++i) spread.tails[i] = quantile(samples, kTailShares[i]);
  return spread;
}

size_t top_of(std::span<const double> values) {
  return static_cast<size_t>(std::max_element(values.begin(), values.end()) - values.begin());
}

}  // namespace

Estimate mean_of(std::span<const double> samples) {
  return {mean(samples), standard_error(standard_deviation(samples), samples.size())};
}

Estimate perplexity_of(std::span<const double> nll) {
  const Estimate log = mean_of(nll);
  Estimate result{std::exp(log.value), std::nullopt};
  if (log.error) result.error = *log.error * result.value;
  return result;
}

PositionDivergence compare_position(std::span<const double> log_p, std::span<const double> base, int32_t target,
                                    double known_above) {
  const auto token = static_cast<size_t>(target);
  PositionDivergence result;
  result.nll = -log_p[token];
  result.nll_base = -base[token];
  for (size_t i = 0; i < base.size(); ++i)
    if (base[i] > known_above) result.kld += std::exp(base[i]) * (base[i] - log_p[i]);
  result.difference = std::exp(log_p[token]) - std::exp(base[token]);
  result.same_top = top_of(log_p) == top_of(base);
  return result;
}

void DivergenceSamples::add(const PositionDivergence& position) {
  nll_.push_back(position.nll);
  nll_base_.push_back(position.nll_base);
  kld_.push_back(position.kld);
  difference_.push_back(position.difference);
  same_top_ += position.same_top ? 1 : 0;
}

DivergenceSummary DivergenceSamples::means() const {
  DivergenceSummary result;
  const size_t count = nll_.size();
  result.positions = size();
  if (count == 0) return result;
  result.ppl = perplexity_of(nll_);
  result.ppl_base = perplexity_of(nll_base_);
  std::vector<double> ratios(count), squares(count);
  for (size_t i = 0; i < count; ++i) {
    ratios[i] = nll_[i] - nll_base_[i];
    squares[i] = difference_[i] * difference_[i];
  }
  result.log_ratio = mean_of(ratios);
  result.ratio = {std::exp(result.log_ratio.value), std::nullopt};
  result.ppl_difference = {result.ppl.value - result.ppl_base.value, std::nullopt};
  result.kld = mean_of(kld_);
  result.difference = mean_of(difference_);
  const Estimate square = mean_of(squares);
  result.rms_difference = {std::sqrt(square.value), std::nullopt};
  const double same = static_cast<double>(same_top_) / static_cast<double>(count);
  result.same_top = {same, std::nullopt};
  if (count < 2) return result;

  const double covariance = *covariance_of_means(nll_, nll_base_);
  const double error = *result.ppl.error, error_base = *result.ppl_base.error;
  const double scaled = result.ppl.value * result.ppl_base.value * covariance;
  result.ratio.error = *result.log_ratio.error * result.ratio.value;
  result.ppl_difference.error = std::sqrt(std::max(0.0, error * error + error_base * error_base - 2 * scaled));
  if (error > 0 && error_base > 0) result.correlation = std::clamp(scaled / (error * error_base), -1.0, 1.0);
  result.rms_difference.error = square.value > 0 ? *square.error / (2 * result.rms_difference.value) : 0;
  result.same_top.error = std::sqrt(same * (1 - same) / static_cast<double>(count - 1));
  return result;
}

DivergenceSummary DivergenceSamples::summary() const {
  DivergenceSummary result = means();
  result.kld_spread = distribution_of(kld_);
  result.difference_spread = distribution_of(difference_);
  return result;
}

std::string other_text(const LogitsHeader& wanted, const LogitsHeader& given) {
  const auto differ = [](const std::string& what, int64_t is, int64_t other) {
    return what + " " + std::to_string(is) + " here, " + std::to_string(other) + " there";
  };
  if (wanted.vocabulary != given.vocabulary)
    return differ("other vocabulary: tokens", wanted.vocabulary, given.vocabulary);
  if (wanted.layout.context != given.layout.context)
    return differ("other chunks: n_ctx", wanted.layout.context, given.layout.context);
  const size_t common = std::min(wanted.tokens.size(), given.tokens.size());
  const auto [here, there] = std::mismatch(
      wanted.tokens.begin(), wanted.tokens.begin() + static_cast<ptrdiff_t>(common), given.tokens.begin());
  if (here != wanted.tokens.begin() + static_cast<ptrdiff_t>(common))
    return differ("other text: token " + std::to_string(here - wanted.tokens.begin()) + " is", *here, *there);
  return {};
}

namespace {

// What a thread finds in one row of both files.
struct RowDifference {
  bool differs = false;
  int64_t first = -1, largest = 0;  // tokens
  double first_a = 0, first_b = 0, largest_a = 0, largest_b = 0;
  double kld = 0;
  bool same_top = true;
};

class FileComparison {
 public:
  FileComparison(const LogitsFile& a, const LogitsFile& b)
      : a_(a), b_(b), raw_(a.form() == LogitsForm::Full && b.form() == LogitsForm::Full) {}

  RowDifference row(int64_t index, std::span<double> log_a, std::span<double> log_b) const {
    RowDifference result;
    if (a_.form() == b_.form()) {
      const auto left = a_.row_bytes(index), right = b_.row_bytes(index);
      if (std::memcmp(left.data(), right.data(), left.size()) == 0) return result;
    }
    a_.log_probabilities(index, log_a);
    b_.log_probabilities(index, log_b);
    const PositionDivergence position =
        compare_position(log_b, log_a, a_.header().target(index), std::max(a_.known_above(), b_.known_above()));
    result.kld = position.kld;
    result.same_top = position.same_top;
    const double known = a_.form() == b_.form() ? -std::numeric_limits<double>::infinity()
                                                : std::max(a_.known_above(), b_.known_above());
    if (raw_) {
      find_values(result, a_.logits(index), b_.logits(index), known);
    } else {
      find_values(result, std::span<const double>(log_a), std::span<const double>(log_b), known);
    }
    return result;
  }

 private:
  // Values that lie at or below `known` in both rows say nothing.
  template <class T>
  static void find_values(RowDifference& result, std::span<const T> a, std::span<const T> b, double known) {
    double largest = -1;
    for (size_t i = 0; i < a.size(); ++i) {
      if (std::memcmp(&a[i], &b[i], sizeof(T)) == 0 || (a[i] <= known && b[i] <= known)) continue;
      if (!result.differs) result.first = static_cast<int64_t>(i), result.first_a = a[i], result.first_b = b[i];
      result.differs = true;
      const double distance = std::fabs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
      if (distance <= largest) continue;
      largest = distance;
      result.largest = static_cast<int64_t>(i);
      result.largest_a = a[i];
      result.largest_b = b[i];
    }
  }

  const LogitsFile& a_;
  const LogitsFile& b_;
  bool raw_;  // logits are compared; else ln p
};

}  // namespace

LogitsDifference compare_files(const LogitsFile& a, const LogitsFile& b, ThreadPool& pool,
                               const std::atomic<bool>& interrupted,
                               const std::function<void(int64_t done, int64_t total)>& progress) {
  const LogitsHeader& header = a.header();
  if (const std::string other = other_text(header, b.header()); !other.empty())
    throw Error(ErrorKind::Usage, other + ": these files cannot be compared", a.path() + " and " + b.path());
  LogitsDifference result;
  result.rows_a = a.rows();
  result.rows_b = b.rows();
  result.positions = std::min(a.rows(), b.rows());
  const FileComparison comparison(a, b);
  const auto width = static_cast<size_t>(header.vocabulary);
  std::vector<double> scratch(static_cast<size_t>(pool.threads()) * 2 * width);
  std::vector<RowDifference> rows(kRowsAtATime);
  const auto place = [&](int64_t row, int64_t token, double left, double right) {
    return LogitsDifference::Place{header.chunk(row), header.position(row), static_cast<int32_t>(token), left, right};
  };
  double total_kld = 0;
  for (int64_t done = 0; done < result.positions;) {
    if (interrupted) throw Error(ErrorKind::Interrupted, "interrupted");
    a.check_size();
    b.check_size();
    const int64_t count = std::min(kRowsAtATime, result.positions - done);
    run_rows(pool, count, [&](int64_t row, int share) {
      const auto mine = std::span(scratch).subspan(static_cast<size_t>(share) * 2 * width, 2 * width);
      rows[static_cast<size_t>(row)] = comparison.row(done + row, mine.first(width), mine.last(width));
    });
    for (int64_t i = 0; i < count; ++i) {
      const RowDifference& row = rows[static_cast<size_t>(i)];
      total_kld += row.kld;
      result.max_kld = std::max(result.max_kld, row.kld);
      result.same_top += row.same_top ? 1 : 0;
      if (!row.differs) continue;
      ++result.differing;
      if (!result.first) result.first = place(done + i, row.first, row.first_a, row.first_b);
      const auto largest = place(done + i, row.largest, row.largest_a, row.largest_b);
      if (result.differing == 1 || std::fabs(largest.difference()) > std::fabs(result.largest.difference()))
        result.largest = largest;
    }
    done += count;
    if (progress) progress(done, result.positions);
  }
  result.mean_kld = result.positions > 0 ? total_kld / static_cast<double>(result.positions) : 0;
  return result;
}

}  // namespace strata
