// The sampler under a grammar's mask.
#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "runtime/sampler.h"

namespace strata {
namespace {

std::vector<float> random_logits(size_t size) {
  std::mt19937 random(3);
  std::vector<float> logits(size);
  for (float& logit : logits) logit = static_cast<float>(random() % 1000) / 100;
  return logits;
}

text::TokenMask mask_of(int32_t size, const std::vector<int32_t>& ids) {
  text::TokenMask mask(size);
  for (const int32_t id : ids) mask.set(id);
  return mask;
}

TEST(SamplerMask, OnlyAllowedTokensAreChosen) {
  const text::TokenMask mask = mask_of(100, {3, 64, 99});
  for (const double temperature : {0.0, 1.0, 5.0}) {
    Sampler sampler({.temperature = temperature, .top_k = 0, .top_p = 1, .min_p = 0, .seed = 1});
    std::vector<int> seen(100);
    for (int i = 0; i < 200; ++i) {
      std::vector<float> logits = random_logits(100);
      ++seen[static_cast<size_t>(sampler.sample(logits, {}, &mask))];
    }
    EXPECT_EQ(seen[3] + seen[64] + seen[99], 200);
    if (temperature == 5) {  // logits differ by at most 10: none of the three is below 5 %
      EXPECT_GT(seen[3] * seen[64] * seen[99], 0);
    }
  }
}

// top-k counts candidates of the grammar: the best of them is found however low it stands.
TEST(SamplerMask, TheMaskComesBeforeTheFilters) {
  std::vector<float> logits(100, 5);
  logits[7] = -20;
  logits[8] = -30;
  const text::TokenMask mask = mask_of(100, {7, 8});
  Sampler drawn({.temperature = 1, .top_k = 1, .seed = 5}), greedy({.temperature = 0});
  EXPECT_EQ(drawn.sample(logits, {}, &mask), 7);
  EXPECT_EQ(greedy.sample(logits, {}, &mask), 7);
}

TEST(SamplerMask, AFullMaskChangesNothing) {
  text::TokenMask all(100);
  for (int32_t id = 0; id < 100; ++id) all.set(id);
  Sampler one({.temperature = 1, .seed = 9}), two({.temperature = 1, .seed = 9});
  for (int i = 0; i < 50; ++i) {
    std::vector<float> a = random_logits(100), b = a;
    EXPECT_EQ(one.sample(a, {}, &all), two.sample(b, {}));
  }
}

TEST(SamplerMask, NothingAllowedIsAnErrorThatNamesTheGrammar) {
  std::vector<float> logits(10, 1);
  const text::TokenMask none(10), other(11);
  for (const double temperature : {0.0, 1.0}) {
    Sampler sampler({.temperature = temperature});
    try {
      sampler.sample(logits, {}, &none);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("the grammar allows no token here"), std::string::npos);
    }
    EXPECT_THROW(sampler.sample(logits, {}, &other), Error);
  }
}

}  // namespace
}  // namespace strata
