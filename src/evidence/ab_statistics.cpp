#include "evidence/ab_statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace strata {
namespace {

double log_choose(int64_t n, int64_t k) {
  const auto log_factorial = [](int64_t m) { return std::lgamma(static_cast<double>(m) + 1); };
  return log_factorial(n) - log_factorial(k) - log_factorial(n - k);
}

// How many order statistics from either end may be left out.
int64_t left_out(int64_t n, double confidence, double& missed) {
  const double allowed = (1 - confidence) / 2;
  int64_t k = 0;
  double sum = 0;
  missed = 0;
  for (; 2 * k < n; ++k) {
    sum += std::exp(log_choose(n, k) - static_cast<double>(n) * std::log(2.0));
    if (sum > allowed * (1 + 1e-12)) break;
    missed = sum;
  }
  return k;
}

std::vector<double> sorted(std::span<const double> samples) {
  std::vector<double> values(samples.begin(), samples.end());
  std::sort(values.begin(), values.end());
  return values;
}

struct Atom {
  double value, weight;
};

double power(double base, int64_t exponent) { return std::pow(base, static_cast<double>(exponent)); }

// P(at least `wanted` of n draws are among the lowest i of n samples).
double at_least(int64_t n, int64_t wanted, int64_t i) {
  const double share = static_cast<double>(i) / static_cast<double>(n);
  if (i == n) return 1;
  double sum = 0;
  for (int64_t k = wanted; k <= n && i > 0; ++k)
    sum += std::exp(log_choose(n, k) + static_cast<double>(k) * std::log(share) +
                    static_cast<double>(n - k) * std::log1p(-share));
  return std::min(sum, 1.0);
}

// Medians of all resamples with their probabilities: for an odd n order statistics, else means of two.
std::vector<Atom> resampled_medians(const std::vector<double>& values) {
  const auto n = static_cast<int64_t>(values.size());
  const int64_t lower = (n + 1) / 2;  // the median is the lower-th smallest, or between it and the next
  std::vector<Atom> atoms;
  for (int64_t i = 1; i <= n; ++i) {
    const double value = values[static_cast<size_t>(i - 1)];
    double here = at_least(n, lower, i) - at_least(n, lower, i - 1);  // the lower-th smallest is the i-th sample
    if (n % 2 == 0)
      for (int64_t j = i + 1; j <= n; ++j) {  // and the next one is the j-th
        const auto share = [n](int64_t count) { return static_cast<double>(count) / static_cast<double>(n); };
        const double below = power(share(i), lower) - power(share(i - 1), lower);
        const double above = power(share(n - j + 1), lower) - power(share(n - j), lower);
        if (below <= 0 || above <= 0) continue;
        const double weight = std::exp(log_choose(n, lower) + std::log(below) + std::log(above));
        here -= weight;
        atoms.push_back({(value + values[static_cast<size_t>(j - 1)]) / 2, weight});
      }
    atoms.push_back({value, std::max(here, 0.0)});
  }
  std::sort(atoms.begin(), atoms.end(), [](const Atom& a, const Atom& b) { return a.value < b.value; });
  return atoms;
}

}  // namespace

Interval median_interval(std::span<const double> samples, double confidence) {
  const std::vector<double> values = sorted(samples);
  const auto n = static_cast<int64_t>(values.size());
  double missed = 0;
  const int64_t k = left_out(n, confidence, missed);
  const double infinite = std::numeric_limits<double>::infinity();
  if (k == 0) return {-infinite, infinite, 1};
  return {values[static_cast<size_t>(k - 1)], values[static_cast<size_t>(n - k)], 1 - 2 * missed};
}

int64_t samples_needed(double confidence) {
  double missed = 0;
  for (int64_t n = 1; n < 64; ++n)
    if (left_out(n, confidence, missed) > 0) return n;
  return 64;
}

Interval bootstrap_interval(std::span<const double> samples, double confidence) {
  constexpr size_t kMost = 1000;
  if (samples.empty() || samples.size() > kMost) return {};
  const std::vector<Atom> atoms = resampled_medians(sorted(samples));
  const double tail = (1 - confidence) / 2;
  Interval interval{atoms.front().value, atoms.back().value, confidence};
  double sum = 0;
  for (const Atom& atom : atoms) {
    if (sum < tail) interval.low = atom.value;
    if (sum < 1 - tail) interval.high = atom.value;
    sum += atom.weight;
  }
  return interval;
}

}  // namespace strata
