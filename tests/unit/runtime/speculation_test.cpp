// Drafts change speed, never the text: same tokens with every kind of draft, greedy and sampled, and a distribution
// that is the model's own.
#include <gtest/gtest.h>

#include <map>

#include "base/log.h"
#include "runtime/engine.h"

namespace strata {
namespace {

const char* const kModel = STRATA_SOURCE_DIR "/models/strata-mini-q8_0.gguf";

class Speculation : public ::testing::Test {
 protected:
  Speculation() : log_(LogLevel::Error), engine_(options(), log_) {}
  static EngineOptions options() {
    EngineOptions options;
    options.model = kModel;
    options.threads = 2;
    return options;
  }
  GenerateRequest request(const std::string& text, int64_t tokens) {
    GenerateRequest request;
    request.prompt = engine_.tokenizer().encode(text);
    request.max_tokens = tokens;
    request.ignore_end = true;
    return request;
  }
  std::vector<int32_t> tokens(GenerateRequest request, DraftKind kind, int most, int64_t* held = nullptr) {
    request.draft = kind;
    request.draft_max = most;
    const GenerateResult result = engine_.generate(request);
    if (held != nullptr)
      for (const DraftLength::Position& position : result.drafts) *held += position.accepted;
    return result.tokens;
  }
  Log log_;
  Engine engine_;
};

TEST_F(Speculation, TheTextIsTheSame) {
  int64_t mtp = 0, lookup = 0;
  for (const char* text : {"The file system", "ls ls ls ls ls ls ls", "1 2 3 4 5 6 7 8 9 10 11 12 13"})
    for (double temperature : {0.0, 0.8}) {
      GenerateRequest one = request(text, 90);
      one.sampler.temperature = temperature;
      one.sampler.seed = 11;
      const std::vector<int32_t> plain = tokens(one, DraftKind::None, 0);
      EXPECT_EQ(plain.size(), 90u);
      for (int most : {1, 3, 7}) EXPECT_EQ(tokens(one, DraftKind::Mtp, most, &mtp), plain) << text << " mtp " << most;
      for (int most : {1, 4, 7}) EXPECT_EQ(tokens(one, DraftKind::Lookup, most, &lookup), plain) << text << " lookup";
    }
  EXPECT_GT(mtp, 50);  // drafts were made, and some held
  EXPECT_GT(lookup, 50);
}

TEST_F(Speculation, StopsWhereThePlainRunStops) {
  for (DraftKind kind : {DraftKind::None, DraftKind::Mtp, DraftKind::Lookup}) {
    GenerateRequest one = request("ls ls ls ls ls ls", 40);
    one.draft = kind;
    one.max_tokens = 5;
    EXPECT_EQ(engine_.generate(one).tokens.size(), 5u);
    one.max_tokens = 100;
    one.context = static_cast<int64_t>(one.prompt.size()) + 9;
    const GenerateResult full = engine_.generate(one);
    EXPECT_EQ(full.reason, FinishReason::Length);
    EXPECT_EQ(full.tokens.size(), 10u);  // nine fit, and the last one need not be run
    one.context = 0;
    one.repeat_limit = 1;
    EXPECT_EQ(engine_.generate(one).reason, FinishReason::Repetition);
  }
}

// The first two tokens of many sampled runs, with and without drafts: the counts are equal because the runs are.
TEST_F(Speculation, TheDistributionIsTheModels) {
  std::map<std::vector<int32_t>, int> plain, drafted;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    GenerateRequest one = request("The", 3);
    one.sampler.temperature = 1.5;
    one.sampler.top_k = 0;
    one.sampler.top_p = 1;
    one.sampler.min_p = 0;
    one.sampler.seed = seed;
    ++plain[tokens(one, DraftKind::None, 0)];
    ++drafted[tokens(one, DraftKind::Mtp, 2)];
  }
  EXPECT_EQ(plain, drafted);
  EXPECT_GT(plain.size(), 20u);  // sampled, not greedy
}

TEST_F(Speculation, AWrongDraftKindIsOneError) {
  GenerateRequest one = request("The", 3);
  one.prompt.clear();
  EXPECT_THROW(engine_.generate(one), Error);
}

}  // namespace
}  // namespace strata
