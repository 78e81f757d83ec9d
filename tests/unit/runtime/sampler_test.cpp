#include "runtime/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "base/error.h"

namespace strata {
namespace {

int32_t sample(Sampler& sampler, std::vector<float> logits, const std::vector<int32_t>& history = {}) {
  return sampler.sample(logits, history);
}

TEST(Sampler, GreedyTakesTheBestAndTheLowestOfEquals) {
  Sampler sampler({});
  EXPECT_EQ(sample(sampler, {0, 3, 1, 3}), 1);
  EXPECT_EQ(sample(sampler, {-2, -1}), 1);
}

TEST(Sampler, TokensThatAreNotAllowedAreNeverChosen) {
  Sampler greedy({}, [](int32_t id) { return id != 1; });
  EXPECT_EQ(sample(greedy, {0, 9, 1}), 2);
  SamplerOptions options;
  options.temperature = 1;
  Sampler drawing(options, [](int32_t id) { return id != 1; });
  for (int i = 0; i < 200; ++i) EXPECT_NE(sample(drawing, {0, 9, 1}), 1);
  Sampler none({}, [](int32_t) { return false; });
  EXPECT_THROW(sample(none, {1, 2}), Error);
}

TEST(Sampler, NotFiniteIsAnErrorThatNamesTheToken) {
  Sampler sampler({});
  for (float bad : {std::nanf(""), INFINITY, -INFINITY}) {
    try {
      sample(sampler, {0, bad, 1});
      FAIL();
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("token 1"), std::string::npos) << error.what();
    }
  }
}

TEST(Sampler, Penalties) {
  SamplerOptions options;
  options.repetition_penalty = 2;
  Sampler repetition(options);
  EXPECT_EQ(sample(repetition, {3, 2, 0}, {0}), 1);        // 3 / 2 < 2
  EXPECT_EQ(sample(repetition, {-1, -1.5f, -9}, {0}), 1);  // -1 * 2 < -1.5
  options = {};
  options.presence_penalty = 1.5;
  Sampler presence(options);
  EXPECT_EQ(sample(presence, {3, 2, 0}, {0}), 1);
  EXPECT_EQ(sample(presence, {4, 2, 0}, {0, 0, 0}), 0);  // once, however often it occurred
  options = {};
  options.frequency_penalty = 0.6;
  Sampler frequency(options);
  EXPECT_EQ(sample(frequency, {3, 2, 0}, {0}), 0);
  EXPECT_EQ(sample(frequency, {3, 2, 0}, {0, 0}), 1);
}

TEST(Sampler, PenaltiesLookBackOverTheWindow) {
  SamplerOptions options;
  options.presence_penalty = 5;
  options.penalty_window = 2;
  Sampler sampler(options);
  EXPECT_EQ(sample(sampler, {3, 2, 0}, {0, 2, 2}), 0);  // token 0 lies outside
  EXPECT_EQ(sample(sampler, {3, 2, 0}, {2, 0, 2}), 1);
  options.penalty_window = -1;
  Sampler all(options);
  EXPECT_EQ(sample(all, {3, 2, 0}, {0, 2, 2, 2, 2}), 1);
}

std::map<int32_t, int> histogram(const SamplerOptions& options, const std::vector<float>& logits, int draws) {
  Sampler sampler(options);
  std::map<int32_t, int> counts;
  for (int i = 0; i < draws; ++i) ++counts[sample(sampler, logits)];
  return counts;
}

TEST(Sampler, DrawsFollowTheDistribution) {
  SamplerOptions options;
  options.temperature = 1, options.top_k = 0, options.top_p = 1, options.min_p = 0, options.seed = 5;
  const std::vector<double> p{0.5, 0.3, 0.15, 0.05};
  std::vector<float> logits;
  for (double value : p) logits.push_back(static_cast<float>(std::log(value)));
  constexpr int kDraws = 20000;
  auto counts = histogram(options, logits, kDraws);
  for (size_t i = 0; i < p.size(); ++i) {
    // Five standard deviations of a binomial: a right sampler fails once in a million seeds, and the seed is fixed.
    const double deviation = std::sqrt(kDraws * p[i] * (1 - p[i]));
    EXPECT_NEAR(counts[static_cast<int32_t>(i)], kDraws * p[i], 5 * deviation);
  }
  options.temperature = 0.5;  // p squared, normalised
  counts = histogram(options, logits, kDraws);
  EXPECT_NEAR(counts[0], kDraws * 0.25 / 0.365, 5 * std::sqrt(kDraws * 0.685 * 0.315));
}

TEST(Sampler, FiltersCutTheTail) {
  const std::vector<float> logits{std::log(0.5f), std::log(0.3f), std::log(0.15f), std::log(0.05f)};
  SamplerOptions options;
  options.temperature = 1, options.top_k = 2, options.top_p = 1, options.min_p = 0;
  EXPECT_EQ(histogram(options, logits, 2000).size(), 2u);
  options.top_k = 0, options.top_p = 0.75;
  EXPECT_EQ(histogram(options, logits, 2000).size(), 2u);  // 0.5 is not enough, 0.8 is
  options.top_p = 1, options.min_p = 0.25;
  EXPECT_EQ(histogram(options, logits, 2000).size(), 3u);  // 0.15 is above 0.25 * 0.5
  options.min_p = 0, options.top_p = 0;
  EXPECT_EQ(histogram(options, logits, 100).size(), 1u);
}

TEST(Sampler, SeedsRepeat) {
  SamplerOptions options;
  options.temperature = 1, options.top_p = 1, options.min_p = 0, options.seed = 9;
  const std::vector<float> logits(50, 0.0f);
  Sampler a(options), b(options);
  options.seed = 10;
  Sampler c(options);
  int different = 0;
  for (int i = 0; i < 50; ++i) {
    const int32_t x = sample(a, logits);
    EXPECT_EQ(x, sample(b, logits));
    different += x != sample(c, logits);
  }
  EXPECT_GT(different, 30);
}

TEST(Sampler, RefusesSettingsOutOfRange) {
  SamplerOptions options;
  options.temperature = -1;
  EXPECT_THROW(Sampler{options}, Error);
  options = {};
  options.top_p = std::nan("");
  EXPECT_THROW(Sampler{options}, Error);
  options = {};
  options.repetition_penalty = 0;
  EXPECT_THROW(Sampler{options}, Error);
}

}  // namespace
}  // namespace strata
