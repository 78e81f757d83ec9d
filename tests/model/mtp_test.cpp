// The MTP block of the families with a plain residual, on weights that make its result known: with the layer's output
// projections zero, the block is merge, norm and head alone.
#include <gtest/gtest.h>

#include "base/error.h"
#include "support/model_run.h"
#include "support/random_model.h"
#include "support/test_files.h"

namespace strata::test {
namespace {

constexpr int kHidden = 64;

// eh_proj [H, 2H]: identity on the embedding half, or on the hidden half.
TensorValues known_block(bool embedding_half) {
  return [embedding_half](const std::string& name, std::vector<float>& values) {
    const bool output = name == "blk.2.attn_output.weight" || name == "blk.2.ffn_down.weight";
    const bool merge = name == "blk.2.nextn.eh_proj.weight";
    if (!output && !merge) return false;
    std::fill(values.begin(), values.end(), 0.0f);
    for (int i = 0; merge && i < kHidden; ++i)
      values[static_cast<size_t>(i * 2 * kHidden + (embedding_half ? 0 : kHidden) + i)] = 1;
    return true;
  };
}

// RMS norm in float64 with a weight tensor of the file.
std::vector<double> normed(const Model& model, const std::string& weight, const std::vector<double>& x) {
  const float* w = reinterpret_cast<const float*>(model.file().data(*model.file().find_tensor(weight)));
  double sum = 0;
  for (double value : x) sum += value * value;
  std::vector<double> y;
  for (size_t i = 0; i < x.size(); ++i)
    y.push_back(x[i] / std::sqrt(sum / static_cast<double>(x.size()) + 1e-6) * static_cast<double>(w[i]));
  return y;
}

void check(bool embedding_half) {
  const TempFolder folder;
  const std::string path = folder.file("mtp.gguf");
  RandomModel({.hidden = kHidden}).write_qwen35_mtp(path, known_block(embedding_half));
  ModelRun model(path);
  ASSERT_EQ(model.spec().mtp_layers, 1);
  const std::vector<int32_t> ids{5, 9, 200, 17, 3};
  SequenceState state(model.spec(), 16, kFixtureTypes);
  std::vector<float> tap;
  model.run(ids, state, 100, &tap);
  constexpr int64_t kPairs = 4;
  std::vector<float> logits(static_cast<size_t>(kPairs * model.vocabulary()));
  std::vector<float> next(static_cast<size_t>(kPairs * kHidden));
  model.forward().draft(make_f32(tap.data(), {kPairs, kHidden}), std::span(ids).subspan(1), 0, state,
                        make_f32(logits.data(), {kPairs, model.vocabulary()}),
                        make_f32(next.data(), {kPairs, kHidden}));
  const float* table =
      reinterpret_cast<const float*>(model.model().file().data(*model.model().file().find_tensor("token_embd.weight")));
  const float* head =
      reinterpret_cast<const float*>(model.model().file().data(*model.model().file().find_tensor("output.weight")));
  for (int64_t p = 0; p < kPairs; ++p) {
    std::vector<double> source;
    for (int i = 0; i < kHidden; ++i)
      source.push_back(static_cast<double>(embedding_half ? table[ids[static_cast<size_t>(p + 1)] * kHidden + i]
                                                          : tap[static_cast<size_t>(p * kHidden + i)]));
    const std::vector<double> merged =
        normed(model.model(), embedding_half ? "blk.2.nextn.enorm.weight" : "blk.2.nextn.hnorm.weight", source);
    const std::vector<double> hidden = normed(model.model(), "blk.2.nextn.shared_head_norm.weight", merged);
    // Two norms and sums of 64 products in f32: about 70 roundings of 6e-8 on values near 1.
    constexpr double kRounding = 1e-5;
    for (int i = 0; i < kHidden; ++i)
      EXPECT_NEAR(static_cast<double>(next[static_cast<size_t>(p * kHidden + i)]), hidden[static_cast<size_t>(i)],
                  kRounding);
    for (int64_t id = 0; id < model.vocabulary(); ++id) {
      double sum = 0;
      for (int i = 0; i < kHidden; ++i)
        sum += static_cast<double>(head[id * kHidden + i]) * hidden[static_cast<size_t>(i)];
      EXPECT_NEAR(static_cast<double>(logits[static_cast<size_t>(p * model.vocabulary() + id)]), sum, kRounding);
    }
  }
  EXPECT_EQ(state.mtp_length, kPairs);
}

TEST(Mtp, MergesTheEmbeddingOfTheNextToken) { check(true); }
TEST(Mtp, MergesTheHiddenStateAfterTheFinalNorm) { check(false); }

// Drafting pair by pair gives the bits of drafting all pairs at once.
TEST(Mtp, StepsEqualOneCall) {
  const TempFolder folder;
  const std::string path = folder.file("mtp.gguf");
  RandomModel({.hidden = kHidden}).write_qwen35_mtp(path, {});
  ModelRun model(path);
  const std::vector<int32_t> ids{5, 9, 200, 17, 3, 77};
  SequenceState together(model.spec(), 16), stepped(model.spec(), 16);
  std::vector<float> tap, ignored;
  model.run(ids, together, 100, &tap);
  model.run(ids, stepped, 100, &ignored);
  const int64_t pairs = 5, vocabulary = model.vocabulary();
  std::vector<float> all(static_cast<size_t>(pairs * vocabulary)), one(all.size());
  model.forward().draft(make_f32(tap.data(), {pairs, kHidden}), std::span(ids).subspan(1), 0, together,
                        make_f32(all.data(), {pairs, vocabulary}));
  for (int64_t p = 0; p < pairs; ++p)
    model.forward().draft(make_f32(tap.data() + p * kHidden, {1, kHidden}),
                          std::span(ids).subspan(static_cast<size_t>(p + 1), 1), p, stepped,
                          make_f32(one.data() + p * vocabulary, {1, vocabulary}));
  EXPECT_EQ(all, one);
}

TEST(Mtp, ModelWithoutABlockRefuses) {
  const TempFolder folder;
  RandomModel({}).write_qwen3(folder.file("plain.gguf"));
  ModelRun model(folder.file("plain.gguf"));
  SequenceState state(model.spec(), 4);
  float tap[kHidden] = {};
  const int32_t id = 1;
  EXPECT_THROW(model.forward().draft(make_f32(tap, {1, kHidden}), {&id, 1}, 0, state, {}), Error);
}

}  // namespace
}  // namespace strata::test
