#include "evidence/statistics.h"

#include <gtest/gtest.h>

#include <vector>

namespace strata {
namespace {

TEST(Statistics, KnownSamples) {
  const std::vector<double> samples = {4, 1, 3, 2};
  EXPECT_EQ(mean(samples), 2.5);
  EXPECT_DOUBLE_EQ(standard_deviation(samples) * standard_deviation(samples), 5.0 / 3);
  EXPECT_EQ(median(samples), 2.5);
  EXPECT_EQ(quantile(samples, 0), 1);
  EXPECT_EQ(quantile(samples, 1), 4);
  EXPECT_EQ(quantile(samples, 1.0 / 3), 2);
}

TEST(Statistics, FewSamples) {
  const std::vector<double> none, one = {7};
  EXPECT_EQ(mean(none), 0);
  EXPECT_EQ(median(none), 0);
  EXPECT_EQ(standard_deviation(one), 0);
  EXPECT_EQ(median(one), 7);
  EXPECT_EQ(quantile(one, 0.9), 7);
}

}  // namespace
}  // namespace strata
