// Model benchmarks on a tiny model: what is run, not how fast.
#include "measure/model_bench.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "measure/page_cache.h"
#include "support/test_files.h"
#include "support/tiny_models.h"

namespace strata {
namespace {

class ModelBenchTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new test::TempFolder;
    test::tiny_model("qwen4exp").write(folder_->file("tiny.gguf"));
  }
  static void TearDownTestSuite() { delete folder_; }

  Engine& engine(int threads = 1) {
    if (!engine_) {
      EngineOptions options;
      options.model = folder_->file("tiny.gguf");
      options.threads = threads;
      engine_ = std::make_unique<Engine>(options, log_);
    }
    return *engine_;
  }
  ModelTestResult run(const ModelTest& test, int repetitions = 1) {
    return ModelBench(engine(), {}).run(test, repetitions, false);
  }

  static test::TempFolder* folder_;
  Log log_{LogLevel::Error};
  std::unique_ptr<Engine> engine_;
};
test::TempFolder* ModelBenchTest::folder_ = nullptr;

// Every way to read the same tokens of the trace ends with the same logits.
TEST_F(ModelBenchTest, ChecksumIsOfTheTokensAlone) {
  const uint64_t whole = run({.prompt = 40}).checksum;
  EXPECT_EQ(run({.prompt = 40, .batch = 16, .micro_batch = 7}).checksum, whole);
  EXPECT_EQ(run({.output = 40}).checksum, whole);
  EXPECT_EQ(run({.prompt = 30, .output = 10}).checksum, whole);
  EXPECT_EQ(run({.prompt = 9, .output = 8, .depth = 23}).checksum, whole);
  EXPECT_NE(run({.prompt = 39}).checksum, whole);
  EXPECT_NE(ModelBench(engine(), {}, {5, 6, 7}).run({.prompt = 40}, 1, false).checksum, whole);
}

TEST_F(ModelBenchTest, MicroBatchesEndWithBatches) {
  std::vector<int64_t> ends;
  BenchHooks hooks;
  hooks.progress = [&](const BenchProgress& now) { ends.push_back(now.done); };
  ModelBench(engine(), hooks).run({.prompt = 40, .batch = 16, .micro_batch = 7}, 1, false);
  const std::vector<int64_t> expected{7, 14, 16, 23, 30, 32, 39, 40};
  EXPECT_EQ(ends, expected);
}

TEST_F(ModelBenchTest, RepetitionsBeginAlikeAndDepthIsReadOnce) {
  int64_t depth_tokens = 0, last_round = 0;
  BenchHooks hooks;
  hooks.progress = [&](const BenchProgress& now) {
    if (std::string(now.what) == "depth") depth_tokens = now.done;
    if (std::string(now.what) == "depth") ++last_round;
  };
  ModelBench bench(engine(), hooks);
  const ModelTest test{.prompt = 5, .output = 4, .depth = 20, .micro_batch = 8};
  const ModelTestResult result = bench.run(test, 3, true);
  EXPECT_EQ(result.seconds.size(), 3u);
  EXPECT_TRUE(result.repeatable);
  EXPECT_FALSE(result.interrupted);
  EXPECT_GT(result.state_bytes, 0u);
  EXPECT_EQ(last_round, 3);  // 20 tokens by 8, once for all repetitions
  ModelTest deeper = test;
  deeper.depth = 28;
  EXPECT_EQ(bench.run(deeper, 1, false).checksum, run(deeper).checksum);
  EXPECT_EQ(last_round, 4);  // the 8 tokens that were missing
  EXPECT_EQ(depth_tokens, 28);
}

TEST_F(ModelBenchTest, DraftsChangeNoToken) {
  ModelTest test{.prompt = 6, .output = 24, .chosen = true};
  const ModelTestResult plain = run(test);
  EXPECT_EQ(plain.drafts.windows, 24);
  EXPECT_EQ(plain.drafts.drafted, 0);
  for (const DraftKind kind : {DraftKind::Lookup, DraftKind::Mtp}) {
    test.drafts.kind = kind;
    const ModelTestResult drafted = run(test, 2);
    EXPECT_EQ(drafted.checksum, plain.checksum) << draft_name(kind);
    EXPECT_TRUE(drafted.repeatable);
    EXPECT_EQ(drafted.drafts.windows + drafted.drafts.accepted, 2 * 24);
    // After a depth the block has cells of the depth's tokens.
    ModelTest deep = test;
    deep.depth = 11;
    const ModelTestResult after = run(deep);
    deep.drafts.kind = DraftKind::None;
    EXPECT_EQ(after.checksum, run(deep).checksum) << draft_name(kind);
  }
}

// Forced acceptance decides how many windows there are, whatever the model says.
TEST_F(ModelBenchTest, SyntheticAcceptance) {
  ModelTest test{.output = 60, .chosen = true};
  for (const DraftKind kind : {DraftKind::Lookup, DraftKind::Mtp}) {
    test.drafts = {.kind = kind, .limit = 4, .synthetic = {.rates = {}, .length = 3}};
    const DraftCounts three = run(test).drafts;
    EXPECT_EQ(three.windows, 20) << draft_name(kind);
    EXPECT_EQ(three.accepted, 40);
    EXPECT_GE(three.drafted, 20 * 4 - 3);  // the last window has room for fewer
    test.drafts.synthetic = {.rates = {1, 1, 0}, .length = 0};
    const DraftCounts rates = run(test).drafts;
    EXPECT_EQ(rates.windows, 20);
    EXPECT_EQ(rates.accepted, 40);
    EXPECT_LE(rates.drafted, 20 * 3);  // as many drafts as rates
  }
}

TEST(SyntheticAcceptance, MeansAreThoseAskedFor) {
  Random random(3);
  const int windows = 20000;
  int64_t kept = 0;
  const SyntheticAcceptance length{.rates = {}, .length = 2.25};
  for (int i = 0; i < windows; ++i) kept += length.kept(7, random);
  // A draw of probability 1/4: its mean over 20,000 has a deviation of 0.0031; five of them.
  EXPECT_NEAR(static_cast<double>(kept) / windows, 1.25, 0.016);
  int64_t first = 0, second = 0;
  const SyntheticAcceptance rates{.rates = {0.8, 0.5}, .length = 0};
  for (int i = 0; i < windows; ++i) {
    const int held = rates.kept(7, random);
    first += held >= 1;
    second += held >= 2;
    EXPECT_LE(held, 2);
  }
  EXPECT_NEAR(static_cast<double>(first) / windows, 0.8, 0.015);   // deviation 0.0028
  EXPECT_NEAR(static_cast<double>(second) / windows, 0.4, 0.018);  // deviation 0.0035
  EXPECT_EQ(rates.kept(0, random), 0);
}

TEST_F(ModelBenchTest, CancelledRunsKeepWhatTheyHave) {
  int passes = 0;
  BenchHooks hooks;
  hooks.cancelled = [&] { return ++passes > 7; };
  ModelBench bench(engine(), hooks);
  const ModelTestResult result = bench.run({.output = 3}, 5, false);  // three passes a repetition
  EXPECT_TRUE(result.interrupted);
  EXPECT_EQ(result.seconds.size(), 2u);
}

TEST_F(ModelBenchTest, SweepWalksOnceAndEqualsSingleTests) {
  int64_t walked = 0;
  BenchHooks hooks;
  hooks.progress = [&](const BenchProgress& now) { walked += std::string(now.what) == "depth"; };
  ModelBench bench(engine(), hooks);
  const ModelTest test{.prompt = 8, .output = 3, .micro_batch = 8};
  std::vector<ModelBench::Point> points;
  EXPECT_TRUE(bench.sweep(test, {0, 8, 24}, 2, true, [&](const ModelBench::Point& point) { points.push_back(point); }));
  ASSERT_EQ(points.size(), 3u);
  for (const ModelBench::Point& point : points) {
    EXPECT_EQ(point.prompt_result.seconds.size(), 2u);
    EXPECT_EQ(point.prompt_result.checksum, run(point.prompt).checksum) << point.prompt.depth;
    EXPECT_EQ(point.output_result.checksum, run(point.output).checksum) << point.prompt.depth;
  }
  EXPECT_EQ(walked, 1);  // 0 -> 8 by the prompt at 0, 8 -> 16 by the one at 8: only 16 .. 24 had to be read
}

TEST_F(ModelBenchTest, WhatCannotRunIsRefused) {
  const auto kind = [&](const ModelTest& test) {
    try {
      check_test(test, engine().model());
    } catch (const Error& error) {
      return std::string(to_string(error.kind())) + ": " + error.message();
    }
    return std::string();
  };
  const int64_t context = engine().model().spec().context;
  EXPECT_EQ(kind({.prompt = context}), "");
  EXPECT_NE(kind({.prompt = context, .output = 1}).find("positions, the model has"), std::string::npos);
  EXPECT_NE(kind({.prompt = 1, .depth = context}).find("@ d"), std::string::npos);
  EXPECT_NE(kind({}).find("needs a prompt"), std::string::npos);
}

TEST_F(ModelBenchTest, PageCacheIsAShare) {
  const std::string path = folder_->file("tiny.gguf");
  drop_cached_pages(path);  // on a file system in memory they stay
  const double share = cached_share(path);
  EXPECT_TRUE(share == -1 || (share >= 0 && share <= 1)) << share;
  EXPECT_THROW(cached_share(path + ".none"), Error);
}

}  // namespace
}  // namespace strata
