// Kept sequences change speed alone: whatever part of a prompt they hold, tokens and logits are those of a run without.
#include "runtime/prompt_cache.h"

#include <gtest/gtest.h>

#include "base/log.h"
#include "runtime/engine.h"

namespace strata {
namespace {

const char* const kModel = STRATA_SOURCE_DIR "/models/strata-mini-q8_0.gguf";

EngineOptions options(uint64_t cache_bytes, uint64_t limit = 0) {
  EngineOptions options;
  options.model = kModel;
  options.threads = 2;
  options.micro_batch = 96;
  options.prompt_cache_bytes = cache_bytes;
  options.sequence_bytes = limit;
  return options;
}

std::vector<int32_t> prompt_of(int64_t length, int32_t seed = 1) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < length; ++i) tokens.push_back(static_cast<int32_t>((i * 37 + seed * 101) % 900 + 20));
  return tokens;
}

class PromptCacheTest : public ::testing::Test {
 protected:
  // Loading takes longer than most tests: two engines serve all of them.
  PromptCacheTest() : plain_(engine(0)), cached_(engine(uint64_t{1} << 30)) { clear(); }
  static Engine& engine(uint64_t cache_bytes) {
    static Engine plain(options(0), log_), cached(options(uint64_t{1} << 30), log_);
    return cache_bytes == 0 ? plain : cached;
  }
  void clear() {
    while (cached_.prompt_cache()->evict()) {
    }
  }
  static GenerateRequest request(std::vector<int32_t> prompt, int64_t tokens = 12, DraftKind draft = DraftKind::None) {
    GenerateRequest request;
    request.prompt = std::move(prompt);
    request.max_tokens = tokens;
    request.ignore_end = true;
    request.draft = draft;
    return request;
  }
  // The same tokens as without a cache; how many tokens of the prompt were found.
  int64_t expect_same(Engine& engine, const GenerateRequest& request) {
    const GenerateResult result = engine.generate(request);
    EXPECT_EQ(result.tokens, plain_.generate(request).tokens);
    return result.cached_tokens;
  }
  std::vector<float> last_logits(Sequence sequence, std::span<const int32_t> tokens) {
    std::vector<float> logits(static_cast<size_t>(plain_.model().spec().vocabulary));
    sequence.set_capacity(sequence.length() + static_cast<int64_t>(tokens.size()));
    plain_.forward().run(tokens, sequence, make_f32(logits.data(), {1, static_cast<int64_t>(logits.size())}));
    return logits;
  }
  static inline Log log_{LogLevel::Error};
  Engine &plain_, &cached_;
};

TEST(CheckpointPositions, AreMultiplesBeforeTheLastToken) {
  EXPECT_TRUE(checkpoint_positions(1, 0).empty());
  EXPECT_TRUE(checkpoint_positions(64, 64).empty());
  EXPECT_EQ(checkpoint_positions(65, 0), std::vector<int64_t>({64}));
  EXPECT_EQ(checkpoint_positions(1000, 200), std::vector<int64_t>({64, 128, 192, 256, 512, 960}));
  const std::vector<int64_t> many = checkpoint_positions(100001, 777);
  EXPECT_EQ(many, std::vector<int64_t>({768, 2048, 4096, 8192, 16384, 32768, 65536, 99968}));
}

TEST_F(PromptCacheTest, AMissRunsEverything) {
  EXPECT_EQ(expect_same(cached_, request(prompt_of(80))), 0);
  EXPECT_EQ(expect_same(cached_, request(prompt_of(80, 2))), 0);
  EXPECT_EQ(cached_.prompt_cache()->size(), 2u);
}

// A first prompt of that many tokens, all of which the next prompt begins with.
TEST_F(PromptCacheTest, AWholePromptIsFound) {
  for (const int64_t prefix : {1, 63, 64, 65, 128}) {
    clear();
    expect_same(cached_, request(prompt_of(prefix), 1));
    EXPECT_EQ(expect_same(cached_, request(prompt_of(prefix + 10))), prefix);
    // The same prompt again: its last token has to be run, so that a checkpoint serves.
    EXPECT_EQ(expect_same(cached_, request(prompt_of(prefix), 5)), (prefix - 1) / 64 * 64);
  }
}

TEST_F(PromptCacheTest, ACommonBeginningIsFoundAtACheckpoint) {
  for (const auto& [common, found] :
       std::vector<std::pair<int64_t, int64_t>>{{63, 0}, {64, 64}, {65, 64}, {127, 64}, {128, 128}, {149, 128}}) {
    clear();
    cached_.generate(request(prompt_of(150), 1));
    std::vector<int32_t> prompt = prompt_of(common), tail = prompt_of(20, 9);
    prompt.insert(prompt.end(), tail.begin(), tail.end());
    EXPECT_EQ(expect_same(cached_, request(prompt, 3)), found) << common;
  }
}

TEST_F(PromptCacheTest, DraftsGoOnFromAKeptSequence) {
  for (DraftKind kind : {DraftKind::Mtp, DraftKind::Lookup, DraftKind::None})
    for (int64_t length : {70, 130, 100}) expect_same(cached_, request(prompt_of(length), 60, kind));
}

TEST_F(PromptCacheTest, AConversationRunsNewTokensOnly) {
  std::vector<int32_t> text = prompt_of(100);
  for (int turn = 0; turn < 4; ++turn) {
    const GenerateRequest one = request(text, 20, DraftKind::Mtp);
    const GenerateResult result = cached_.generate(one);
    EXPECT_EQ(result.tokens, plain_.generate(one).tokens);
    // Ten new tokens, and the last one of the reply, which had not to be run.
    EXPECT_EQ(result.cached_tokens, turn > 0 ? static_cast<int64_t>(text.size()) - 11 : 0);
    text.insert(text.end(), result.tokens.begin(), result.tokens.end());
    for (int32_t token : prompt_of(10, turn + 3)) text.push_back(token);
    EXPECT_EQ(cached_.prompt_cache()->size(), 1u);  // the sequence that goes on replaces what it began with
  }
}

TEST_F(PromptCacheTest, LogitsAreTheSameBits) {
  const std::vector<int32_t> prompt = prompt_of(220);
  Sequence fresh(plain_.model().spec(), 220);
  const std::vector<float> expected = last_logits(fresh, prompt);
  cached_.generate(request(prompt_of(220)));
  for (int repeat = 0; repeat < 2; ++repeat) {  // using a copy does not change what is kept
    const auto hit = cached_.prompt_cache()->find(prompt);
    ASSERT_TRUE(hit);
    EXPECT_EQ(hit->length, 192);
    EXPECT_EQ(last_logits(hit->sequence, std::span(prompt).subspan(192)), expected);
  }
}

TEST_F(PromptCacheTest, TheSharedPrefixHasACheckpoint) {
  GenerateRequest one = request(prompt_of(600));
  one.shared_prefix = 330;
  expect_same(cached_, one);
  std::vector<int32_t> other = prompt_of(335);
  other.push_back(3);
  EXPECT_EQ(expect_same(cached_, request(other)), 320);
}

TEST_F(PromptCacheTest, WhatWasUsedLongestAgoGoesFirst) {
  cached_.generate(request(prompt_of(100, 1)));
  const uint64_t one = cached_.pool().used();
  Engine engine(options(one * 5 / 2), log_);  // two fit
  engine.generate(request(prompt_of(100, 1)));
  engine.generate(request(prompt_of(100, 2)));
  EXPECT_EQ(engine.prompt_cache()->size(), 2u);
  EXPECT_GT(expect_same(engine, request(prompt_of(100, 1))), 0);  // now 2 is the older one
  engine.generate(request(prompt_of(100, 3)));
  EXPECT_EQ(engine.prompt_cache()->size(), 2u);
  EXPECT_LE(engine.pool().used(), one * 5 / 2);
  EXPECT_EQ(expect_same(engine, request(prompt_of(100, 2))), 0);
}

TEST_F(PromptCacheTest, ABudgetTooSmallForOneKeepsNone) {
  Engine engine(options(1000), log_);
  for (int repeat = 0; repeat < 2; ++repeat) EXPECT_EQ(expect_same(engine, request(prompt_of(130))), 0);
  EXPECT_EQ(engine.prompt_cache()->size(), 0u);
  EXPECT_EQ(engine.pool().used(), 0u);
}

TEST_F(PromptCacheTest, KeptSequencesGiveWayToRunningOnes) {
  plain_.pool().trim();
  auto slot = plain_.open(request(prompt_of(200)), {});
  const Segment segment = slot->next(200);
  plain_.reserve(*slot, segment);
  const uint64_t one = plain_.pool().used();
  Engine engine(options(uint64_t{1} << 30, one + one / 2), log_);  // no room for a second sequence
  for (int32_t seed = 1; seed < 4; ++seed) EXPECT_EQ(expect_same(engine, request(prompt_of(200, seed))), 0);
  Engine tiny(options(uint64_t{1} << 30, one / 2), log_);
  EXPECT_THROW(tiny.generate(request(prompt_of(200))), Error);
  EXPECT_LE(tiny.pool().used(), one / 2);
}

// Keys and values in a file: found again as those in memory, and their bytes count against the budget.
TEST_F(PromptCacheTest, KeptSequencesMayLieInAFile) {
  EngineOptions in_a_file = options(uint64_t{1} << 30);
  in_a_file.caches.resident = kPageRows;
  Engine tiered(in_a_file, log_);
  EXPECT_EQ(expect_same(tiered, request(prompt_of(300))), 0);
  EXPECT_EQ(expect_same(tiered, request(prompt_of(310))), 256);  // a checkpoint: the output was another
  const FileTierStats file = tiered.pool().file();
  EXPECT_GT(file.used, 0u);
  EXPECT_LT(file.resident, file.used);
  EXPECT_GT(file.read, 0u);

  in_a_file.prompt_cache_bytes = tiered.pool().used() + file.used / 2;  // enough for what is in memory
  Engine small(in_a_file, log_);
  expect_same(small, request(prompt_of(310)));
  EXPECT_LE(small.pool().used() + small.pool().file().used, in_a_file.prompt_cache_bytes);
}

TEST_F(PromptCacheTest, AnInterruptedPromptIsKept) {
  std::atomic<bool> interrupted = false;
  GenerateCallbacks callbacks;
  callbacks.interrupted = &interrupted;
  callbacks.prompt_progress = [&](int64_t done, int64_t) { interrupted = done >= 128; };
  const GenerateResult result = cached_.generate(request(prompt_of(200)), callbacks);
  EXPECT_EQ(result.reason, FinishReason::Interrupted);
  EXPECT_GE(expect_same(cached_, request(prompt_of(200))), 128);
}

}  // namespace
}  // namespace strata
