// The elementary functions of the CPU arms against float64.
#include "base/fmath.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"

namespace strata {
namespace {

// Distance from the float64 value in units of the last place of the f32 result.
double ulps(float got, double wanted) {
  const float rounded = static_cast<float>(wanted);
  const double ulp =
      static_cast<double>(std::nextafter(std::fabs(rounded), INFINITY)) - std::fabs(static_cast<double>(rounded));
  return std::fabs(static_cast<double>(got) - wanted) / ulp;
}

TEST(Fmath, ExpWithinTwoUlp) {
  double worst = 0;
  for (int i = -870000; i <= 887000; ++i) {  // -87 .. 88.7 in steps of 1e-4
    const float x = static_cast<float>(i) * 1e-4f;
    worst = std::max(worst, ulps(exp_f32(x), std::exp(static_cast<double>(x))));
  }
  std::printf("exp_f32: worst %.3f ulp\n", worst);
  EXPECT_LE(worst, 2.0);  // the contract of fmath.h
  EXPECT_GE(worst, 0.5);  // nothing in f32 does better than rounding: a smaller figure means a broken measure
}

TEST(Fmath, ExpAtTheEdges) {
  EXPECT_EQ(exp_f32(0.0f), 1.0f);
  EXPECT_EQ(exp_f32(-INFINITY), 0.0f);
  EXPECT_EQ(exp_f32(-1e4f), 0.0f);
  EXPECT_EQ(exp_f32(-88.0f), 0.0f);
  EXPECT_EQ(exp_f32(INFINITY), INFINITY);
  EXPECT_EQ(exp_f32(89.0f), INFINITY);
  EXPECT_TRUE(std::isnan(exp_f32(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_TRUE(std::isfinite(exp_f32(88.72f)));
}

TEST(Fmath, SigmoidSiluSoftplus) {
  for (int i = -12000; i <= 12000; ++i) {
    const float x = static_cast<float>(i) * 1e-2f;
    const double wide = static_cast<double>(x);
    // exp within 2 ulp, one addition, one division: 4 roundings relative to the result.
    const double sigmoid = 1 / (1 + std::exp(-wide));
    if (x > -87.0f) {
      EXPECT_NEAR(static_cast<double>(sigmoid_f32(x)), sigmoid, 4 * 0x1p-23 * sigmoid) << x;
      EXPECT_NEAR(static_cast<double>(silu_f32(x)), wide * sigmoid, 4 * 0x1p-23 * std::fabs(wide * sigmoid) + 1e-38)
          << x;
    }
    const double softplus = x > 20.0f ? wide : std::log1p(std::exp(wide));
    EXPECT_NEAR(static_cast<double>(softplus_f32(x)), softplus, 0x1p-23 * softplus + 1e-45) << x;
  }
  EXPECT_EQ(sigmoid_f32(-200.0f), 0.0f);
  EXPECT_EQ(sigmoid_f32(200.0f), 1.0f);
  EXPECT_EQ(silu_f32(-200.0f), -0.0f);
}

TEST(Fmath, DotSumsInSixteenLanes) {
  Random random(3);
  for (int64_t n : {0, 1, 15, 16, 17, 31, 160, 333}) {
    std::vector<float> x(static_cast<size_t>(n)), y(x.size());
    double wanted = 0, size = 0;
    float lanes[kLanes] = {};
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = random.uniform(-1, 1), y[i] = random.uniform(-1, 1);
      wanted += static_cast<double>(x[i]) * static_cast<double>(y[i]);
      size += std::fabs(static_cast<double>(x[i]) * static_cast<double>(y[i]));
      lanes[i % kLanes] += x[i] * y[i];
    }
    const float got = dot_f32(x.data(), y.data(), n);
    EXPECT_EQ(got, reduce_lanes(lanes)) << n;  // the order of the sums is part of the contract
    EXPECT_NEAR(static_cast<double>(got), wanted, static_cast<double>(n / 16 + 6) * 0x1p-24 * size);
  }
}

}  // namespace
}  // namespace strata
