// Settings of RoPE scaling over what a file says: what reaches the model, how far its context goes then, and what is
// refused because it would have no effect.
#include <gtest/gtest.h>

#include "base/error.h"
#include "support/model_run.h"
#include "support/test_files.h"
#include "support/tiny_models.h"

namespace strata::test {
namespace {

// Tiny qwen3 states YaRN: scale 2 over 32 positions, a context of 64, attention factor 1.0625. qwen3moe: linear, 2.
// llama: none.
class RopeScalingTest : public ::testing::Test {
 protected:
  ModelSpec spec(const std::string& arch, const RopeOverride& rope = {}) {
    const std::string path = folder_.file(arch + ".gguf");
    if (!std::filesystem::exists(path)) tiny_model(arch).write(path);
    return Model::load(path, rope).spec();
  }
  std::string usage_error(const std::string& arch, const RopeOverride& rope) {
    try {
      spec(arch, rope);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Usage) << error.what();
      return error.what();
    }
    return "accepted";
  }
  TempFolder folder_;
};

RopeOverride scaled(const char* scaling, double factor, double original = 0) {
  RopeOverride rope;
  rope.scaling = scaling;
  rope.factor = factor;
  rope.original_context = original;
  return rope;
}

TEST_F(RopeScalingTest, TheFileDecidesWithoutSettings) {
  const ModelSpec file = spec("qwen3");
  EXPECT_EQ(file.rope.scaling, RopeScaling::Yarn);
  EXPECT_EQ(file.rope.factor, 2);
  EXPECT_EQ(file.rope.original_context, 32);
  EXPECT_EQ(file.rope.attention_factor, 1.0625);
  EXPECT_EQ(file.context, 64);
  EXPECT_EQ(
      describe_rope(file),
      "YaRN, scale 2: 32 to 64 positions, attention factor 1.0625 as stated (engines that replace it take 1.0693)");
  EXPECT_EQ(spec("qwen3moe").rope.scaling, RopeScaling::Linear);
  EXPECT_EQ(spec("qwen3moe").context, 64);  // a file's own linear scale is part of what it was trained with
  EXPECT_EQ(spec("llama").rope.scaling, RopeScaling::None);
  EXPECT_EQ(describe_rope(spec("llama")), "");
}

TEST_F(RopeScalingTest, SettingsReplaceWhatTheFileSays) {
  RopeOverride rope = scaled("yarn", 4, 128);
  rope.attention_factor = 1.5;
  rope.ext = 0.25;
  rope.beta_fast = 20;
  rope.beta_slow = 2;
  rope.base = 5000;
  for (const char* arch : {"llama", "qwen3", "qwen3moe", "qwen4exp"}) {
    const ModelSpec with = spec(arch, rope);
    EXPECT_EQ(with.rope.scaling, RopeScaling::Yarn);
    EXPECT_EQ(with.rope.factor, 4);
    EXPECT_EQ(with.rope.original_context, 128);
    EXPECT_EQ(with.rope.attention_factor, 1.5);
    EXPECT_EQ(with.rope.ext, 0.25);
    EXPECT_EQ(with.rope.beta_fast, 20);
    EXPECT_EQ(with.rope.beta_slow, 2);
    EXPECT_EQ(with.rope.base, 5000);
    EXPECT_EQ(with.context, 512);
  }
  rope.ext = 0;  // a value of its own
  EXPECT_EQ(spec("qwen3", rope).rope.ext, 0);
  RopeOverride nothing;  // as the flags' -1
  nothing.attention_factor = nothing.beta_fast = nothing.beta_slow = -1;
  EXPECT_EQ(spec("qwen3", nothing).rope.attention_factor, 1.0625);
  EXPECT_EQ(spec("qwen3", nothing).rope.beta_fast, 32);
  EXPECT_EQ(spec("qwen3", scaled("none", 0)).rope.scaling, RopeScaling::None);
}

TEST_F(RopeScalingTest, TheContextGrowsByTheScale) {
  EXPECT_EQ(spec("llama", scaled("yarn", 2)).context, 128);
  EXPECT_EQ(describe_rope(spec("llama", scaled("yarn", 2))),
            "YaRN, scale 2: 64 to 128 positions, attention factor 1.0693");
  EXPECT_EQ(spec("llama", scaled("linear", 2)).context, 128);
  EXPECT_EQ(describe_rope(spec("llama", scaled("linear", 2))), "linear, scale 2: 128 positions");
  const ModelSpec alone = spec("llama", scaled("", 2));  // a scale alone is linear, as users know it
  EXPECT_EQ(alone.rope.scaling, RopeScaling::Linear);
  EXPECT_EQ(alone.context, 128);
  EXPECT_EQ(spec("qwen3", scaled("", 4)).rope.scaling, RopeScaling::Yarn);  // the file's scaling, the user's scale
  EXPECT_EQ(spec("qwen3", scaled("", 4)).context, 128);
  EXPECT_EQ(spec("llama", scaled("yarn", 0.5)).context, 64);
  EXPECT_EQ(spec("llama", scaled("yarn", 10000, 16777216)).context, kMaxContext);
  EXPECT_EQ(spec("llama", scaled("yarn", 2, 262144)).context, 524288);
}

TEST_F(RopeScalingTest, SettingsWithoutEffectAreRefused) {
  EXPECT_NE(usage_error("llama", scaled("none", 2)).find("--rope-scale"), std::string::npos);
  EXPECT_NE(usage_error("llama", scaled("", 0, 64)).find("add --rope-scaling yarn"), std::string::npos);
  for (double RopeOverride::*member : {&RopeOverride::attention_factor, &RopeOverride::ext, &RopeOverride::beta_fast,
                                       &RopeOverride::beta_slow, &RopeOverride::original_context}) {
    RopeOverride rope = scaled("linear", 2);
    rope.*member = 1;
    EXPECT_NE(usage_error("llama", rope).find("--yarn-* settings have no meaning with RoPE scaling linear"),
              std::string::npos);
    rope.scaling = "yarn";
    EXPECT_EQ(usage_error("llama", rope), "accepted");
  }
}

// The scaling reaches keys, queries and index keys: every setting changes the logits of rows behind the first.
TEST_F(RopeScalingTest, EverySettingChangesTheLogits) {
  const std::string path = folder_.file("run.gguf");
  tiny_model("qwen4exp").write(path);
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < 40; ++i) ids.push_back(i * 7 % 250);
  auto logits = [&](const RopeOverride& rope) { return ModelRun(path, 1, {}, rope).run(ids); };
  const RopeOverride base = scaled("yarn", 4, 4096);
  const std::vector<float> plain = logits(base);
  const std::pair<double RopeOverride::*, double> changes[] = {
      {&RopeOverride::factor, 8}, {&RopeOverride::original_context, 16}, {&RopeOverride::attention_factor, 1.3},
      {&RopeOverride::ext, 0},    {&RopeOverride::beta_fast, 1e6},       {&RopeOverride::beta_slow, 1e3},
      {&RopeOverride::base, 2e4}};
  for (const auto& [member, value] : changes) {
    RopeOverride changed = base;
    changed.*member = value;
    EXPECT_NE(logits(changed), plain) << value;
  }
}

}  // namespace
}  // namespace strata::test
