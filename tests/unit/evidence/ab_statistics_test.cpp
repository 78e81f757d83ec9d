#include "evidence/ab_statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random.h"
#include "evidence/statistics.h"

namespace strata {
namespace {

std::vector<double> one_to(int n) {
  std::vector<double> values;
  for (int i = n; i >= 1; --i) values.push_back(i);
  return values;
}

// Tables of the sign test: 6: 1 .. 6 at 96.9 %, 8: 1 .. 8, 9: 2 .. 8, 10: 2 .. 9 at 97.9 %, 20: 6 .. 15 at 95.9 %.
TEST(MedianInterval, IsThatOfTheSignTest) {
  for (const auto& [n, low, high, level] :
       {std::tuple(6, 1, 6, 1 - 2.0 / 64), std::tuple(8, 1, 8, 1 - 2.0 / 256), std::tuple(9, 2, 8, 1 - 20.0 / 512),
        std::tuple(10, 2, 9, 1 - 22.0 / 1024), std::tuple(20, 6, 15, 0.9586105)}) {
    const Interval interval = median_interval(one_to(n), 0.95);
    EXPECT_EQ(interval.low, low) << n;
    EXPECT_EQ(interval.high, high) << n;
    EXPECT_NEAR(interval.level, level, 1e-7) << n;
  }
}

TEST(MedianInterval, TooFewSamplesBoundNothing) {
  EXPECT_EQ(samples_needed(0.95), 6);
  EXPECT_EQ(samples_needed(0.5), 2);
  EXPECT_EQ(samples_needed(0.99), 8);
  for (const int n : {0, 1, 5}) {
    const Interval interval = median_interval(one_to(n), 0.95);
    EXPECT_TRUE(std::isinf(interval.low) && interval.low < 0) << n;
    EXPECT_TRUE(std::isinf(interval.high) && interval.high > 0) << n;
  }
  EXPECT_GT(median_interval(one_to(1000), 0.95).low, 460);  // 500 - 1.96 sqrt(1000) / 2 = 469
}

// Against drawing: 200,000 resamples leave the wanted quantile between its neighbours.
TEST(BootstrapInterval, IsTheLimitOfDrawing) {
  Random random(3);
  for (const int n : {1, 2, 5, 6, 10, 13}) {
    std::vector<double> samples, medians;
    for (int i = 0; i < n; ++i) samples.push_back(std::exp(random.uniform()));
    for (int draw = 0; draw < 200000; ++draw) {
      std::vector<double> again;
      for (int i = 0; i < n; ++i) again.push_back(samples[static_cast<size_t>(random.below(n))]);
      medians.push_back(median(again));
    }
    const Interval interval = bootstrap_interval(samples, 0.95);
    // Quantiles move by 0.0014 of probability (four standard deviations of drawing).
    EXPECT_GE(interval.low, quantile(medians, 0.025 - 0.0014) - 1e-12) << n;
    EXPECT_LE(interval.low, quantile(medians, 0.025 + 0.0014) + 1e-12) << n;
    EXPECT_GE(interval.high, quantile(medians, 0.975 - 0.0014) - 1e-12) << n;
    EXPECT_LE(interval.high, quantile(medians, 0.975 + 0.0014) + 1e-12) << n;
  }
}

TEST(BootstrapInterval, EdgesAndTies) {
  EXPECT_EQ(bootstrap_interval({}, 0.95).high, 0);
  const std::vector<double> same(10, 1.5);
  EXPECT_EQ(bootstrap_interval(same, 0.95).low, 1.5);
  EXPECT_EQ(bootstrap_interval(same, 0.95).high, 1.5);
  const Interval many = bootstrap_interval(one_to(1000), 0.95);
  EXPECT_NEAR(many.low, 500.5 - 1.96 * std::sqrt(1000.0) / 2, 3);
  EXPECT_NEAR(many.high, 500.5 + 1.96 * std::sqrt(1000.0) / 2, 3);
}

// Why it does not decide: of 10,000 intervals for 8 samples it misses the median on one side more often than the 2.5 %
// that its name promises, the interval of order statistics never does.
TEST(BootstrapInterval, IsTooNarrowForFewSamples) {
  Random random(5);
  int bootstrap = 0, exact = 0;
  constexpr int kTrials = 10000;
  for (int t = 0; t < kTrials; ++t) {
    std::vector<double> samples;
    for (int i = 0; i < 8; ++i) samples.push_back(random.uniform());
    bootstrap += bootstrap_interval(samples, 0.95).low > 0.5;
    exact += median_interval(samples, 0.95).low > 0.5;
  }
  EXPECT_GT(bootstrap, 0.03 * kTrials);
  EXPECT_LT(exact, 0.01 * kTrials);  // 1 / 256
}

}  // namespace
}  // namespace strata
