// Vectors of texts: what pooling makes of hidden states, and the same bits however a text was read.
#include "runtime/embedding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "base/error.h"
#include "base/log.h"
#include "runtime/scheduler.h"
#include "support/gguf_builder.h"
#include "support/test_files.h"

namespace strata {
namespace {

const char* const kModel = STRATA_SOURCE_DIR "/models/strata-mini-q8_0.gguf";

std::vector<float> pooled(Pooling pooling, const std::vector<std::vector<float>>& calls) {
  Pooler pooler(pooling, 2);
  for (const auto& rows : calls) pooler.add(rows);
  return pooler.vector();
}

TEST(EmbeddingTest, PoolingTakesWhatItsNameSays) {
  const std::vector<std::vector<float>> calls{{1, 2}, {3, 4, 8, 9}};
  EXPECT_EQ(pooled(Pooling::None, calls), (std::vector<float>{1, 2, 3, 4, 8, 9}));
  EXPECT_EQ(pooled(Pooling::Mean, calls), (std::vector<float>{4, 5}));
  EXPECT_EQ(pooled(Pooling::First, calls), (std::vector<float>{1, 2}));
  EXPECT_EQ(pooled(Pooling::Last, calls), (std::vector<float>{8, 9}));
  EXPECT_TRUE(pooled(Pooling::Mean, {}).empty());
}

TEST(EmbeddingTest, ValuesThatAreNotFiniteAreAnError) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Pooler pooler(Pooling::Mean, 2);
    EXPECT_THROW(pooler.add(std::vector<float>{1, bad}), Error);
  }
}

TEST(EmbeddingTest, NormalisedVectorsHaveLengthOne) {
  std::vector<float> vector{3, 0, -4}, zeros{0, 0};
  normalise(vector);
  EXPECT_EQ(vector, (std::vector<float>{0.6f, 0, -0.8f}));
  normalise(zeros);
  EXPECT_EQ(zeros, (std::vector<float>{0, 0}));
}

TEST(EmbeddingTest, TheFileSaysHowItsVectorsAreMade) {
  const auto pooling = [](const std::string& arch, int type) {
    test::GgufBuilder raw;
    raw.key("general.architecture", test::raw_string(arch));
    if (type >= 0) raw.key(arch + ".pooling_type", test::raw_scalar(test::kU32, static_cast<uint32_t>(type)));
    const test::MemoryFile file(raw.build());
    return file_pooling(gguf::File::open(file.path()));
  };
  EXPECT_EQ(pooling("qwen3", -1), std::nullopt);
  EXPECT_EQ(pooling("qwen3", 1), Pooling::Mean);
  EXPECT_EQ(pooling("qwen3", 3), Pooling::Last);
  EXPECT_THROW(pooling("qwen3", 4), Error);  // ranks
}

class EmbeddingEngine : public ::testing::Test {
 protected:
  static EngineOptions options(int64_t micro_batch) {
    EngineOptions options;
    options.model = kModel;
    options.threads = 2;
    options.micro_batch = micro_batch;
    options.prompt_cache_bytes = uint64_t{64} << 20;
    return options;
  }
  static std::vector<int32_t> text(int64_t length, int32_t seed) {
    std::vector<int32_t> tokens;
    for (int64_t i = 0; i < length; ++i) tokens.push_back(static_cast<int32_t>((i * 37 + seed * 101) % 900 + 20));
    return tokens;
  }
  static GenerateRequest generate(int64_t length, int32_t seed, int64_t tokens) {
    GenerateRequest request;
    request.prompt = text(length, seed);
    request.max_tokens = tokens;
    request.ignore_end = true;
    return request;
  }
  static GenerateRequest embed(int64_t length, int32_t seed) {
    GenerateRequest request;
    request.prompt = text(length, seed);
    request.embed = true;
    return request;
  }
  // A row for each token.
  static std::vector<float> rows(Engine& engine, const GenerateRequest& request) {
    Pooler pooler(Pooling::None, engine.model().spec().hidden);
    GenerateCallbacks callbacks;
    callbacks.hidden = [&](std::span<const float> some) { pooler.add(some); };
    const GenerateResult result = engine.generate(request, callbacks);
    EXPECT_TRUE(result.tokens.empty());
    EXPECT_EQ(result.cached_tokens, 0);
    return pooler.vector();
  }
  Log log_{LogLevel::Error};
};

// What the head reads for the logits of every position.
TEST_F(EmbeddingEngine, HiddenStatesAreThoseThatLogitsComeFrom) {
  EngineOptions own = options(512);
  std::vector<float> seen;
  own.forward.observe = [&](const char* name, int, const Tensor& value) {
    if (std::string_view(name) == "final_hidden") seen.assign(value.f32(), value.f32() + value.elements());
  };
  Engine engine(own, log_);
  const std::vector<float> made = rows(engine, embed(70, 1));
  EXPECT_TRUE(seen.empty());  // the head did not run
  const std::vector<int32_t> tokens = text(70, 1);
  Sequence sequence(engine.model().spec(), 70);
  std::vector<float> logits(static_cast<size_t>(70 * engine.model().spec().vocabulary));
  engine.forward().run(tokens, sequence, make_f32(logits.data(), {70, engine.model().spec().vocabulary}));
  EXPECT_EQ(made, seen);
}

TEST_F(EmbeddingEngine, NeitherPiecesNorCompanyNorKeptPromptsChangeABit) {
  Engine whole(options(512), log_);
  std::vector<std::vector<float>> alone;
  const int64_t lengths[] = {1, 64, 150};
  for (int i = 0; i < 3; ++i) alone.push_back(rows(whole, embed(lengths[i], i)));
  for (const int64_t pieces : {1, 7, 64}) {
    Engine engine(options(pieces), log_);
    engine.generate(generate(150, 2, 1));  // is kept: its rows are still needed
    Scheduler scheduler(engine, {.slots = 3});
    std::map<int64_t, std::vector<float>> made;
    std::vector<int64_t> ids;
    for (int i = 0; i < 3; ++i) {
      ScheduledCallbacks callbacks;
      callbacks.hidden = [&made, i](std::span<const float> some) {
        made[i].insert(made[i].end(), some.begin(), some.end());
      };
      callbacks.failed = [](int64_t, const Error& error) { ADD_FAILURE() << error.what(); };
      scheduler.add(embed(lengths[i], i), callbacks);
      scheduler.add(generate(20, i, 6), {});
    }
    while (scheduler.step()) {
    }
    for (int i = 0; i < 3; ++i) EXPECT_EQ(made[i], alone[static_cast<size_t>(i)]) << pieces << " " << i;
  }
}

}  // namespace
}  // namespace strata
