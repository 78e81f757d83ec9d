// Sequences filled without a prompt: what they hold, and that a model goes on from them as from any other.
#include "measure/synthetic_depth.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "base/log.h"
#include "measure/token_trace.h"
#include "runtime/engine.h"
#include "support/append.h"

namespace strata {
namespace {

const char* const kModel = STRATA_SOURCE_DIR "/models/strata-mini-q8_0.gguf";

class SyntheticDepth : public ::testing::Test {
 protected:
  SyntheticDepth() : model(Model::load(kModel)) {}
  Sequence filled(int64_t positions, uint64_t seed, const CacheOptions& caches = {}) {
    Sequence sequence(model.spec(), 4000, caches);
    fill_synthetic(test_queue(), sequence, model.spec(), positions, seed);
    return sequence;
  }
  Model model;
};

TEST_F(SyntheticDepth, FillsEveryCacheAlikeForOneSeed) {
  for (const bool anchored : {false, true})
    for (const int64_t positions : {0, 1, 3, 1023, 1024, 1025, 3001}) {
      CacheOptions caches;
      caches.anchored = anchored;
      const Sequence sequence = filled(positions, 7, caches);
      EXPECT_EQ(sequence.length(), positions);
      EXPECT_EQ(sequence.mtp_length(), std::max<int64_t>(positions - 1, 0));
      EXPECT_EQ(sequence.hash(), filled(positions, 7, caches).hash());
      if (positions > 0) {
        EXPECT_NE(sequence.hash(), filled(positions, 8, caches).hash());
      }
      EXPECT_LE(sequence.bytes().total(), state_bytes(model.spec(), positions, caches).total()) << positions;
    }
}

TEST_F(SyntheticDepth, RefusesWhatItCannotFill) {
  Sequence used = filled(5, 1);
  EXPECT_THROW(fill_synthetic(test_queue(), used, model.spec(), 5), Error);
  Sequence small(model.spec(), 10);
  EXPECT_THROW(fill_synthetic(test_queue(), small, model.spec(), 11), Error);
  EXPECT_THROW(fill_synthetic(test_queue(), small, model.spec(), -1), Error);
  EXPECT_EQ(small.length(), 0);
  PagePool pool(4 << 20);
  Sequence poor(model.spec(), 100000, {}, pool);
  EXPECT_THROW(fill_synthetic(test_queue(), poor, model.spec(), 100000), Error);
  Sequence stopped(model.spec(), 4000);
  fill_synthetic(test_queue(), stopped, model.spec(), 4000, 1, [](int64_t done) { return done < 2000; });
  EXPECT_EQ(stopped.length(), 2048);
}

// Through the engine, with drafts: the positions count as a prompt that was kept, logits are finite and the bits do not
// depend on how often it runs.
TEST_F(SyntheticDepth, AnEngineGoesOnFromIt) {
  EngineOptions options;
  options.model = kModel;
  options.threads = 2;
  Log log(LogLevel::Error);
  Engine engine(options, log);
  std::vector<int32_t> first;
  for (const DraftKind draft : {DraftKind::None, DraftKind::Mtp}) {
    GenerateRequest request;
    HeldSequence held{token_trace(model.spec().vocabulary, 3000), Sequence(engine.model().spec(), 3100)};
    fill_synthetic(engine.queue(), *held.sequence, engine.model().spec(), 3000);
    request.prompt = held.tokens;
    request.prompt.insert(request.prompt.end(), {5, 6, 7});
    request.max_tokens = 12;
    request.context = 3100;
    request.ignore_end = true;
    request.draft = draft;
    const GenerateResult result = engine.generate(request, {}, &held);
    EXPECT_EQ(result.cached_tokens, 3000);
    EXPECT_EQ(result.tokens.size(), 12u);
    if (first.empty()) first = result.tokens;
    EXPECT_EQ(result.tokens, first);
  }
}

}  // namespace
}  // namespace strata
