// The statistics of paired trials tried on 10,000 trials of each kind whose truth is known. Expected rates follow from
// the rule: with 10 ratios and 95 % the interval runs from the second lowest to the second highest, so a gate passes
// when at least 9 of 10 ratios reach it. A ratio that reaches it with probability p makes that
// p^10 + 10 p^9 (1 - p), which is 11/1024 for a true effect right at the gate.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "base/random.h"
#include "evidence/ab.h"
#include "evidence/statistics.h"
#include "unit/evidence/ab_case.h"

namespace strata {
namespace {

constexpr int kTrials = 10000;
constexpr double kGate = 1.05;
constexpr double kNoise = 0.01;  // relative, of one cell

double normal(Random& random) {
  const double u = 1 - random.uniform(), v = random.uniform();
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

double phi(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }
double nine_of_ten(double p) { return std::pow(p, 10) + 10 * std::pow(p, 9) * (1 - p); }
// Four standard deviations of a rate over kTrials: one run in 16,000 leaves them by chance, and seeds are fixed.
double four_sigma(double rate) { return 4 * std::sqrt(rate * (1 - rate) / kTrials) + 1e-12; }

struct World {
  double effect = 1;    // true speed of B over that of A
  double drift = 0;     // log of a cell's time per run
  double mode = 1;      // factor on the times of half of the pairs, of both sides
  double outliers = 0;  // share of cells that take three times as long
};

struct Rates {
  double promote = 0, reject = 0, inconclusive = 0;
  double warned = 0;        // medians disagree in sign
  double naive = 0;         // ratio of mean times reaches the gate
  double naive_blocks = 0;  // the same when all of A had run before all of B
};

double cell_seconds(const World& world, Random& random, bool b, double run, int64_t pair_number) {
  double log_time = kNoise * normal(random) + world.drift * run;
  if (b) log_time -= std::log(world.effect);
  if (pair_number % 2 == 1) log_time += std::log(world.mode);
  if (random.uniform() < world.outliers) log_time += std::log(3.0);
  return std::exp(log_time);
}

Rates rates_of(const World& world, uint64_t seed) {
  Random random(seed);
  Rates rates;
  const AbPlan plan = test::ab_plan("prefill>=+5%");
  for (int t = 0; t < kTrials; ++t) {
    std::array<double, 2> sum{}, blocks{};
    const AbTrial trial = test::ab_trial(plan, [&](const AbCell& cell) {
      if (cell.metric == AbMetric::Decode) return 1.0;
      const bool b = cell.side == AbSide::B;
      const auto run = static_cast<double>(cell.order);
      const double seconds = cell_seconds(world, random, b, run, cell.pair * 2 + cell.slot);
      sum[b] += seconds;
      // The same cell had the sides not been interleaved: A in runs 0 .. 9, B in 10 .. 19.
      const double block_run = std::floor(run / 2) + (b ? 10 : 0);
      blocks[b] += seconds * std::exp(world.drift * (block_run - run));
      return seconds;
    });
    const AbJudgement judgement = judge(trial);
    rates.promote += judgement.verdict == AbVerdict::Promote;
    rates.reject += judgement.verdict == AbVerdict::Reject;
    rates.inconclusive += judgement.verdict == AbVerdict::Inconclusive;
    rates.warned += judgement.comparisons.front().disagree;
    rates.naive += sum[0] / sum[1] >= kGate;
    rates.naive_blocks += blocks[0] / blocks[1] >= kGate;
  }
  for (double* rate :
       {&rates.promote, &rates.reject, &rates.inconclusive, &rates.warned, &rates.naive, &rates.naive_blocks})
    *rate /= kTrials;
  EXPECT_NEAR(rates.promote + rates.reject + rates.inconclusive, 1, 1e-9);
  return rates;
}

// The ratio of two cells has a noise of sqrt(2) cells in its logarithm.
double share_above(double effect) { return phi(std::log(effect / kGate) / (kNoise * std::numbers::sqrt2)); }

TEST(AbSelfTest, AtTheGateWrongVerdictsHaveTheStatedRate) {
  const Rates rates = rates_of({.effect = kGate}, 1);
  const double expected = 11.0 / 1024;
  EXPECT_NEAR(rates.promote, expected, four_sigma(expected));
  EXPECT_NEAR(rates.reject, expected, four_sigma(expected));
  EXPECT_NEAR(rates.naive, 0.5, 0.05);  // a point estimate has no such rate
}

TEST(AbSelfTest, BelowTheGatePromotionIsRarerStillAndAboveRejectionIs) {
  const Rates below = rates_of({.effect = 1.04}, 2), above = rates_of({.effect = 1.06}, 3);
  EXPECT_NEAR(below.promote, nine_of_ten(share_above(1.04)), four_sigma(nine_of_ten(share_above(1.04))));
  EXPECT_NEAR(above.reject, nine_of_ten(1 - share_above(1.06)), four_sigma(nine_of_ten(1 - share_above(1.06))));
  EXPECT_LT(below.promote, 0.002);
  EXPECT_LT(above.reject, 0.002);
}

TEST(AbSelfTest, WellAboveTheGateTheVerdictIsPromote) {
  for (const double effect : {1.07, 1.08, 1.1}) {
    const Rates rates = rates_of({.effect = effect}, 4);
    const double power = nine_of_ten(share_above(effect));
    EXPECT_NEAR(rates.promote, power, four_sigma(power)) << effect;
  }
  EXPECT_GT(nine_of_ten(share_above(1.08)), 0.97);
}

// A drift lengthens every ratio's distance from the truth, now to one side and now to the other: wrong verdicts become
// rarer, not more frequent.
TEST(AbSelfTest, DriftDoesNotPromote) {
  const double stated = 11.0 / 1024;
  for (const double drift : {0.005, -0.005, 0.03, -0.03}) {
    const Rates rates = rates_of({.effect = kGate, .drift = drift}, 5);
    EXPECT_LE(rates.promote, stated + four_sigma(stated)) << drift;
    EXPECT_LE(rates.reject, stated + four_sigma(stated)) << drift;
  }
  const Rates none = rates_of({.effect = 1, .drift = -0.01}, 6);  // the machine gets 1 % faster with every run
  EXPECT_EQ(none.promote, 0);
  EXPECT_GT(none.naive_blocks, 0.99) << "the control: means of one side after the other see a gain of 10 %";
}

TEST(AbSelfTest, TwoModesOfTheMachineDoNotDecideAndAreNamed) {
  const World world{.effect = 1.08, .mode = 1.4};
  const Rates rates = rates_of(world, 7);
  const double power = nine_of_ten(share_above(1.08));
  EXPECT_NEAR(rates.promote, power, four_sigma(power));  // a mode meets both sides of a pair
  // Without an effect the median of each side falls into the gap between the modes: the two statistics disagree often.
  EXPECT_GT(rates_of({.effect = 1.002, .mode = 1.4}, 8).warned, 0.05);
  EXPECT_LT(rates.warned, 0.001);
}

TEST(AbSelfTest, OutliersCostPowerNotTruth) {
  constexpr double kShare = 0.05;
  const World at_gate{.effect = kGate, .outliers = kShare};
  const double stated = 11.0 / 1024;
  const Rates rates = rates_of(at_gate, 9);
  EXPECT_NEAR(rates.promote, stated, four_sigma(stated));
  // One of two cells slowed down threefold decides its ratio alone; both or neither leave it as it is.
  const double one = kShare * (1 - kShare);
  const double p = (1 - 2 * one) * share_above(1.1) + one;
  const Rates power = rates_of({.effect = 1.1, .outliers = kShare}, 10);
  EXPECT_NEAR(power.promote, nine_of_ten(p), four_sigma(nine_of_ten(p)));
  // The control: the ratio of means misses a gate that every pair passes by far more than its noise.
  EXPECT_LT(power.naive, 0.8);
}

}  // namespace
}  // namespace strata
