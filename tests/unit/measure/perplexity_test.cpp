// Perplexity of the default model: positions, BOS, and the same bytes whatever the micro-batch and the threads.
#include "measure/perplexity.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/buffer.h"
#include "base/error.h"
#include "base/mapped_file.h"
#include "measure/model_hash.h"
#include "measure/token_trace.h"
#include "runtime/vocabulary.h"
#include "support/test_files.h"

namespace strata::test {
namespace {

EngineOptions options(int64_t micro_batch, int threads) {
  EngineOptions options;
  options.model = STRATA_SOURCE_DIR "/models/strata-mini-q8_0.gguf";
  options.micro_batch = micro_batch;
  options.threads = threads;
  return options;
}

class PerplexityTest : public ::testing::Test {
 protected:
  static Engine& engine() {
    static Engine engine(options(512, 2), log_);
    return engine;
  }
  static inline Log log_{LogLevel::Error};
};

PerplexityRun measure(Engine& engine, const ChunkedText& text, PerplexityHooks hooks = {}) {
  PerplexityRun run;
  run_perplexity(engine, text, hooks, run);
  return run;
}

// The logits of every position of a chunk in one call, and a sum of exponentials in long double.
TEST_F(PerplexityTest, ScoresTheSecondHalfAgainstTheTokensThatFollow) {
  for (const int64_t context : {3, 8, 33}) {
    const ChunkedText text = cut_chunks(token_trace(8192, context * 2 + 1), context, -1);
    ASSERT_EQ(text.chunks(), 2);
    const PerplexityRun run = measure(engine(), text);
    std::vector<double> wanted;
    for (int64_t chunk = 0; chunk < 2; ++chunk) {
      const auto tokens =
          std::span(text.tokens).subspan(static_cast<size_t>(chunk * context), static_cast<size_t>(context));
      Sequence sequence(engine().model().spec(), context, engine().options().caches);
      const Buffer buffer(static_cast<size_t>(context * 8192) * sizeof(float));
      const Tensor logits = buffer.f32({context, 8192});
      engine().forward().run(tokens, sequence, logits);
      for (int64_t position = context / 2; position <= context - 2; ++position) {
        const float* row = logits.row<float>(position);
        long double sum = 0;
        for (int64_t i = 0; i < 8192; ++i) sum += std::exp(static_cast<long double>(row[i]));
        wanted.push_back(static_cast<double>(std::log(sum) - row[tokens[static_cast<size_t>(position + 1)]]));
      }
    }
    ASSERT_EQ(run.nll.size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(run.nll[i], wanted[i], 1e-11) << i;  // sums of 8,192 doubles
    EXPECT_EQ(run.chunks, 2);
    EXPECT_EQ(run.tokens, 2 * (context - 1));
  }
}

TEST_F(PerplexityTest, TheFirstTokenOfAChunkGivesWayToBos) {
  ChunkedText text = cut_chunks(token_trace(8192, 20), 10, -1);
  ChunkedText replaced = text;
  text.first = 5;
  replaced.tokens[0] = replaced.tokens[10] = 5;
  EXPECT_EQ(measure(engine(), text).nll, measure(engine(), replaced).nll);
  EXPECT_NE(measure(engine(), text).nll, measure(engine(), cut_chunks(token_trace(8192, 20), 10, -1)).nll);

  text::Vocabulary vocabulary = read_vocabulary(engine().model().file());
  vocabulary.bos = 2;
  vocabulary.add_bos = false;
  EXPECT_FALSE(begin_token(text::Tokenizer(vocabulary)));
  vocabulary.add_bos = true;
  EXPECT_EQ(begin_token(text::Tokenizer(vocabulary)), 2);
}

std::string dump(int64_t micro_batch, int threads, LogitsForm form, DType keys = DType::F16) {
  const TempFolder folder;
  Log log(LogLevel::Error);
  EngineOptions wanted = options(micro_batch, threads);
  wanted.caches.keys = keys;
  Engine engine(wanted, log);
  const ChunkedText text = cut_chunks(token_trace(8192, 72), 36, -1);
  LogitsWriter writer(folder.file("dump"), form,
                      {.layout = text.layout,
                       .vocabulary = 8192,
                       .tokens = text.tokens,
                       .model = model_hash(engine.model().file()),
                       .settings = bit_settings(engine)});
  PerplexityHooks hooks;
  hooks.rows = [&](const ScoredRows& rows) { writer.add(rows.logits, engine.queue().pool()); };
  measure(engine, text, hooks);
  writer.finish();
  return read_file(folder.file("dump"), size_t{1} << 28);
}

TEST_F(PerplexityTest, DumpsHaveTheSameBytesWhateverTheMicroBatchAndThreads) {
  for (const LogitsForm form : {LogitsForm::Full, LogitsForm::Codes}) {
    const std::string reference = dump(512, 1, form);
    for (const auto& [micro_batch, threads] : {std::pair<int64_t, int>{1, 1}, {7, 3}, {21, 2}})
      EXPECT_TRUE(dump(micro_batch, threads, form) == reference) << micro_batch << " " << threads;
    EXPECT_FALSE(dump(512, 1, form, DType::Q8_0) == reference);
  }
}

TEST_F(PerplexityTest, AnInterruptionKeepsWhatWasMeasured) {
  const ChunkedText text = cut_chunks(token_trace(8192, 64), 16, -1);
  const PerplexityRun whole = measure(engine(), text);
  std::atomic<bool> stop{false};
  PerplexityHooks hooks;
  hooks.interrupted = &stop;
  hooks.chunk = [&](int64_t chunks) { stop = chunks == 2; };
  const PerplexityRun run = measure(engine(), text, hooks);
  EXPECT_EQ(run.end, PerplexityRun::End::Interrupted);
  EXPECT_EQ(run.chunks, 2);
  EXPECT_EQ(run.nll, std::vector<double>(whole.nll.begin(), whole.nll.begin() + 14));
}

TEST(Chunks, AreWholeAndAtLeastOne) {
  EXPECT_EQ(cut_chunks(token_trace(9, 100), 30, -1).chunks(), 3);
  EXPECT_EQ(cut_chunks(token_trace(9, 100), 30, 2).tokens.size(), 60u);
  for (const auto& [count, context, limit] : {std::array<int64_t, 3>{29, 30, -1}, {100, 30, 0}, {100, 2, -1}})
    EXPECT_THROW(cut_chunks(token_trace(9, count), context, limit), Error);
  try {
    cut_chunks({}, 512, -1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "the text has 0 tokens, a chunk 512: give a longer text or shorter chunks (-c), at least one chunk");
  }
}

}  // namespace
}  // namespace strata::test
