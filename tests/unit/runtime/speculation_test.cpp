// Drafts change speed, never the text: same tokens with every kind of draft, greedy and sampled. What is promised is
// more than a distribution: a draft holds when the sampler, with the random number that the token would have had
// anyway, chooses it. So each seed gives one text, and the texts of all seeds are distributed as without drafts.
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

// Each seed gives its text with every kind of draft, so that the counts of texts are equal too. The drafter proposes
// what the last seed gave: right at times, wrong at times, as tokens of a flat distribution are.
TEST_F(Speculation, EverySeedHasOneTextWhateverIsDrafted) {
  using Texts = std::map<std::vector<int32_t>, int>;
  Texts plain, mtp, lookup, drafted;
  std::vector<int32_t> last;
  int64_t held = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    GenerateRequest one = request("ls ls", 4);
    one.draft_min = 3;
    one.sampler = {.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0, .seed = seed};
    const std::vector<int32_t> text = tokens(one, DraftKind::None, 0);
    ++plain[text];
    ++mtp[tokens(one, DraftKind::Mtp, 3, &held)];
    ++lookup[tokens(one, DraftKind::Lookup, 3, &held)];
    one.drafter = [&](std::span<const int32_t> so_far, int) {
      const size_t at = so_far.size() - one.prompt.size();
      return at < last.size() ? std::vector(last.begin() + static_cast<int64_t>(at), last.end())
                              : std::vector<int32_t>();
    };
    ++drafted[tokens(one, DraftKind::None, 3, &held)];
    last = text;
  }
  EXPECT_EQ(plain, mtp);
  EXPECT_EQ(plain, lookup);
  EXPECT_EQ(plain, drafted);
  EXPECT_GT(plain.size(), 15u);  // sampled, not greedy
  EXPECT_GT(held, 20);
}

TEST_F(Speculation, ADrafterGetsTheTextAndItsTokensAreChecked) {
  GenerateRequest one = request("The file", 9);
  const std::vector<int32_t> plain = tokens(one, DraftKind::None, 0);
  std::vector<int> limits;
  one.drafter = [&](std::span<const int32_t> text, int limit) {
    limits.push_back(limit);
    EXPECT_TRUE(std::equal(one.prompt.begin(), one.prompt.end(), text.begin()));
    return std::vector<int32_t>(plain.begin() + static_cast<int64_t>(text.size() - one.prompt.size()), plain.end());
  };
  EXPECT_EQ(tokens(one, DraftKind::None, 4), plain);
  EXPECT_EQ(limits, (std::vector<int>{4, 2}));  // 1 + 5 + 3 tokens: more than the limit are cut, and 9 are enough
  for (const int32_t wrong : {-1, 1 << 30}) {
    one.drafter = [wrong](std::span<const int32_t>, int) { return std::vector<int32_t>{wrong}; };
    EXPECT_THROW(engine_.generate(one), Error);
  }
}

// A window of drafts that hold does not pass the limit of equal tokens.
TEST_F(Speculation, EqualTokensEndTheOutputInsideAWindow) {
  const std::string grammar = "root ::= \"a\"+";
  GenerateRequest one = request("a a", 40);
  one.grammar = text::Grammar::from_gbnf(grammar);
  const std::vector<int32_t> plain = tokens(one, DraftKind::None, 0);
  size_t equal = 1;  // of the first token
  while (equal < plain.size() && plain[equal] == plain[0]) ++equal;
  ASSERT_GE(equal, 4u);
  one.repeat_limit = 3;
  for (DraftKind kind : {DraftKind::None, DraftKind::Mtp, DraftKind::Lookup, DraftKind::Auto}) {
    one.draft = kind;
    one.draft_min = 7;
    if (kind == DraftKind::Auto)
      one.drafter = [&](std::span<const int32_t>, int) { return std::vector<int32_t>(7, plain[0]); };
    HeldSequence held;
    const GenerateResult result = engine_.generate(one, {}, &held);
    EXPECT_EQ(result.reason, FinishReason::Repetition);
    EXPECT_EQ(result.tokens.size(), 3u);
    EXPECT_EQ(held.sequence->length(), static_cast<int64_t>(one.prompt.size()) + 2);
  }
}

TEST_F(Speculation, AWrongDraftKindIsOneError) {
  GenerateRequest one = request("The", 3);
  one.prompt.clear();
  EXPECT_THROW(engine_.generate(one), Error);
}

}  // namespace
}  // namespace strata
