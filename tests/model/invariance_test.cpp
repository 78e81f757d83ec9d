// Same tokens, same bits: logits do not depend on the micro-batch or on the number of threads.
#include <gtest/gtest.h>

#include <cstring>

#include "base/random.h"
#include "support/model_run.h"

namespace strata::test {
namespace {

void same_bits(const std::string& path, int64_t tokens) {
  std::vector<float> reference;
  for (int threads : {1, 2, 3})
    for (int64_t step : {tokens, int64_t{1}, int64_t{7}, int64_t{64}}) {
      if (threads != 1 && step != tokens && step != 7) continue;
      ModelRun model(path, threads);
      model.types.index_keys = DType::BF16;
      std::vector<int32_t> ids;
      Random choice(11);
      for (int64_t i = 0; i < tokens; ++i) ids.push_back(static_cast<int32_t>(choice.below(model.vocabulary())));
      const std::vector<float> logits = model.run(ids, step);
      if (reference.empty()) reference = logits;
      ASSERT_EQ(logits.size(), reference.size());
      EXPECT_EQ(std::memcmp(logits.data(), reference.data(), logits.size() * sizeof(float)), 0)
          << threads << " threads, " << step << " tokens at a time";
    }
}

TEST(SameBits, PeerFiles) {
  const std::string folder = fixture_folder("gguf-peer");
  for (const std::string& name : entries_of(folder, ".gguf")) {
    SCOPED_TRACE(name);
    same_bits(folder + "/" + name, 150);
  }
}

// 330 tokens are beyond the selection budget of 256: part of the rows prune.
TEST(SameBits, DefaultModel) { same_bits(source_path("models/strata-mini-q8_0.gguf"), 330); }

// The type of the index keys reaches the selection: rows beyond the budget of 256 differ, the others do not.
TEST(SameBits, TheTypeOfIndexKeysChangesPrunedRowsOnly) {
  ModelRun model(source_path("models/strata-mini-q8_0.gguf"), 2);
  std::vector<int32_t> ids;
  Random choice(12);
  for (int64_t i = 0; i < 400; ++i) ids.push_back(static_cast<int32_t>(choice.below(model.vocabulary())));
  const std::vector<float> f32 = model.run(ids);
  model.types.index_keys = DType::BF16;
  const std::vector<float> bf16 = model.run(ids);
  const auto within = static_cast<ptrdiff_t>(256 * model.vocabulary());
  EXPECT_TRUE(std::equal(f32.begin(), f32.begin() + within, bf16.begin()));
  EXPECT_NE(f32, bf16);
}

// Different tokens give different logits: the comparison above can fail.
TEST(SameBits, HasForce) {
  ModelRun model(source_path("models/strata-mini-q8_0.gguf"));
  const std::vector<int32_t> a{1, 2, 3}, b{1, 2, 4};
  EXPECT_NE(model.run(a), model.run(b));
}

}  // namespace
}  // namespace strata::test
