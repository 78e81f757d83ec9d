// The opposite of malformed: odd but legal files must load, and other layouts of the same weights give the same bits.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <ostream>

#include "gguf/quant.h"
#include "hostile/run_case.h"
#include "support/model_run.h"
#include "support/test_files.h"

namespace strata {
void PrintTo(const DTypeInfo& type, std::ostream* out) { *out << type.name; }
}  // namespace strata

namespace strata::test {
namespace {

using gguf::Value;

// Logits of a prompt that passes the budget of the index and the context of the n-grams, and of the draft block.
std::vector<float> logits_of(const std::string& path, bool portable = false) {
  std::vector<int32_t> tokens;
  for (int i = 0; i < 24; ++i) tokens.push_back((i * 37 + 5) % 264);
  tokens[9] = 262;  // ends the context of the n-grams
  ModelRun model(path);
  if (portable)
    for (const char* op : {"matmul", "experts"}) model.forward().queue().request_arm(op, "portable");
  Sequence state(model.spec(), 24);
  std::vector<float> taps, logits = model.run(tokens, state, 100, &taps);
  if (model.spec().mtp_layers == 0) return logits;
  std::vector<float> drafted(static_cast<size_t>(24 * model.vocabulary()));
  model.forward().draft(make_f32(taps.data(), {24, model.spec().residual_width()}), tokens, 0, state,
                        make_f32(drafted.data(), {24, model.vocabulary()}));
  logits.insert(logits.end(), drafted.begin(), drafted.end());
  return logits;
}

std::vector<float> logits_of(const ModelImage& image, uint32_t alignment = 32, bool portable = false) {
  const MemoryFile file(image.bytes(alignment));
  return logits_of(file.path(), portable);
}

void expect_finite(const std::vector<float>& logits) {
  size_t finite = 0, distinct = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    finite += std::isfinite(logits[i]) ? 1 : 0;
    distinct += i > 0 && logits[i] != logits[i - 1] ? 1 : 0;
  }
  EXPECT_EQ(finite, logits.size());
  EXPECT_GT(distinct, logits.size() / 2) << "logits that are all alike show nothing";
}

void expect_same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  expect_finite(a);
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0);
}

class ValidModel : public testing::TestWithParam<const char*> {
 protected:
  std::string arch() const { return GetParam(); }
  std::string key(const std::string& suffix) const { return arch() + "." + suffix; }
  const ModelImage& base() const { return base_image(arch()); }
};
INSTANTIATE_TEST_SUITE_P(Arch, ValidModel, testing::ValuesIn(kArchitectures),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(ValidModel, WriterAndImageGiveTheSameFile) {
  const TempFolder folder;
  for (const uint32_t alignment : {32u, 64u}) {
    base().write(folder.file("m.gguf"), alignment);
    std::ifstream in(folder.file("m.gguf"), std::ios::binary);
    const std::string written((std::istreambuf_iterator<char>(in)), {});
    EXPECT_EQ(written, base().bytes(alignment));
  }
}

TEST_P(ValidModel, GeneratesAndDrafts) {
  const MemoryFile file(base().bytes());
  const CaseResult result = run_model(file.path(), base().bytes().size());
  EXPECT_TRUE(result.generated) << result.error;
  EXPECT_EQ(result.defect, "");
}

TEST_P(ValidModel, LayoutsGiveTheSameBits) {
  const std::vector<float> plain = logits_of(base());
  const auto changed = [&](const char* what, const ModelImage& image, bool applies) {
    SCOPED_TRACE(what);
    EXPECT_EQ(image.bytes() != base().bytes(), applies) << "the layout is that of the base";
    expect_same_bits(plain, logits_of(image));
  };
  changed("fused qkv", with_fused_qkv(base()), true);
  changed("fused gate and up", with_fused_gate_up(base()), has_experts(arch()));
  changed("reversed tensors", with_reversed_tensors(base()), true);
  if (arch() == "qwen3next") {
    changed("legacy ssm_in", with_legacy_ssm_in(base()), true);
    changed("ssm_beta and ssm_alpha", with_split_ssm_ba(base()), true);
    changed("all of them", with_reversed_tensors(with_fused_gate_up(with_fused_qkv(with_legacy_ssm_in(base())))), true);
  }
  if (arch() == "qwen4exp") changed("norms [H, n]", with_wide_norms(base()), true);
  for (const uint32_t alignment : {8u, 64u, 4096u}) {
    SCOPED_TRACE(alignment);
    expect_same_bits(plain, logits_of(base(), alignment));
  }
}

TEST_P(ValidModel, AxesOfOne) {
  ModelImage image = base();
  for (ImageTensor& t : image.tensors)
    if (t.ne.size() == 1)
      t.ne.insert(t.name.find("gate_inp_shexp") != std::string::npos ? t.ne.end() : t.ne.begin(), 1);
  // [1, n] holds whole blocks only in types without blocks: these are all F32.
  expect_same_bits(logits_of(base()), logits_of(image));
}

TEST_P(ValidModel, SplitFiles) {
  const std::vector<float> plain = logits_of(base());
  for (const size_t count : {size_t{2}, size_t{3}, base().tensors.size() + 2}) {  // with shards that hold nothing
    const TempFolder folder;
    const std::vector<ModelImage> shards = split_images(base(), count);
    for (size_t i = 0; i < count; ++i) folder.write(split_name(i, count), shards[i].bytes(i == 1 ? 128 : 32));
    for (const size_t open : {size_t{0}, count - 1})
      expect_same_bits(plain, logits_of(folder.file(split_name(open, count))));
  }
}

TEST_P(ValidModel, NormsOfTwoBytes) {
  const std::vector<float> plain = logits_of(base());
  for (const DType type : {DType::F16, DType::BF16})  // the values are exact in both
    expect_same_bits(plain, logits_of(tiny_model(arch(), {.norms = type})));
}

TEST_P(ValidModel, TiedHead) {
  const ModelImage tied = tiny_model(arch(), {.tied = true});
  EXPECT_EQ(const_cast<ModelImage&>(tied).find_tensor("output.weight"), nullptr);
  ModelImage untied = tied;
  ImageTensor head = untied.tensor("token_embd.weight");
  head.name = "output.weight";
  untied.tensors.push_back(head);
  expect_same_bits(logits_of(tied), logits_of(untied));
}

TEST_P(ValidModel, ArraysPerBlock) {
  ModelImage image = base();
  const uint64_t blocks = image.find(key("block_count"))->u;
  for (const char* suffix : {"attention.head_count", "attention.head_count_kv", "feed_forward_length",
                             "expert_used_count", "expert_feed_forward_length"}) {
    const Value* old = image.find(key(suffix));
    if (old == nullptr) continue;
    image.set(key(suffix), old->u % 2 == 0
                               ? Value::of_u32s(std::vector<uint64_t>(blocks, old->u))
                               : Value::of_i32s(std::vector<int64_t>(blocks, static_cast<int64_t>(old->u))));
  }
  expect_same_bits(logits_of(base()), logits_of(image));
}

TEST_P(ValidModel, OptionalKeysMayBeMissing) {
  ModelImage image = base();
  for (const char* suffix : {"attention.scale", "attention.key_length", "attention.value_length", "rope.freq_base"})
    image.erase(key(suffix));
  image.erase("general.name"), image.erase("general.file_type");
  // 1 / sqrt(16) and 10000 are the values of the base; and width / heads its head dim.
  expect_same_bits(logits_of(base()), logits_of(image));
}

TEST(ValidHybrid, IntervalAndListOfLayerKindsAgree) {
  for (const char* arch : {"qwen3next", "qwen35", "qwen35moe", "qwen4exp"}) {
    const std::string interval = std::string(arch) + ".full_attention_interval";
    const std::string list = std::string(arch) + ".attention.recurrent_layers";
    ModelImage by_interval = base_image(arch), by_list = base_image(arch);
    by_interval.set(interval, Value::of_u32(2)), by_interval.erase(list);
    by_list.set(list, Value::of_bools({1, 0, 0})), by_list.set(interval, Value::of_u32(4));  // the list wins
    expect_same_bits(logits_of(by_interval), logits_of(by_list));
  }
}

TEST(ValidHybrid, DraftBlockWithAndWithoutOwnEnds) {
  for (const char* arch : {"qwen3next", "qwen35", "qwen35moe", "qwen4exp"}) {
    ModelImage own = tiny_model(arch, {.own_mtp_ends = true});
    own.tensor("blk.2.nextn.embed_tokens.weight").data = own.tensor("token_embd.weight").data;
    const std::vector<float> plain = logits_of(base_image(arch));
    std::vector<float> drafted = logits_of(own);
    EXPECT_EQ(drafted.size(), plain.size());
    EXPECT_NE(std::memcmp(drafted.data(), plain.data(), plain.size() * sizeof(float)), 0)
        << "another head, other logits";
    own.tensor("blk.2.nextn.shared_head_head.weight").data = own.tensor("output.weight").data;
    expect_same_bits(plain, logits_of(own));
    expect_finite(logits_of(tiny_model(arch, {.mtp = false})));
  }
  for (const char* arch : {"qwen3next", "qwen35", "qwen35moe"}) {
    ModelImage image = base_image(arch);  // without a norm of its own the block takes that of the trunk
    image.tensor("output_norm.weight").data = image.tensor("blk.2.nextn.shared_head_norm.weight").data;
    const std::vector<float> plain = logits_of(image);
    image.erase_tensor("blk.2.nextn.shared_head_norm.weight");
    expect_same_bits(plain, logits_of(image));
  }
}

TEST(ValidLlama, BiasesOfZeroAndFactorsOfOneAreNone) {
  ModelImage with = base_image("llama"), without = with;
  for (const ImageTensor& t : base_image("llama").tensors) {
    if (!t.name.ends_with(".bias") && t.name != "rope_freqs.weight") continue;
    ImageTensor& changed = with.tensor(t.name);
    std::vector<float> values(changed.data.size() / sizeof(float), t.name == "rope_freqs.weight" ? 1.0f : 0.0f);
    std::memcpy(changed.data.data(), values.data(), changed.data.size());
    without.erase_tensor(t.name);
  }
  const std::vector<float> plain = logits_of(without);
  expect_same_bits(plain, logits_of(with));
  const std::vector<float> biased = logits_of(base_image("llama"));
  EXPECT_NE(std::memcmp(biased.data(), plain.data(), plain.size() * sizeof(float)), 0) << "biases that are read";
}

TEST(ValidLlama, ExpertsWithTheNamesOfOtherFamilies) {
  // Mixtral: the llama architecture with experts, whose size is the feed-forward length.
  ModelImage image = base_image("llama");
  for (const ImageTensor& t : base_image("llama").tensors)
    if (t.name.find(".ffn_") != std::string::npos && t.name.find("ffn_norm") == std::string::npos)
      image.erase_tensor(t.name);
  for (const ImageTensor& t : base_image("qwen3moe").tensors)
    if (t.name.find(".ffn_") != std::string::npos && t.name.find("ffn_norm") == std::string::npos)
      image.tensors.push_back(t);
  image.set("llama.expert_count", Value::of_u32(4)), image.set("llama.expert_used_count", Value::of_u32(2));
  expect_finite(logits_of(image));
}

TEST(ValidExperts, ADenseLayerAmongThem) {
  for (const char* arch : {"qwen3moe", "qwen3next", "qwen35moe", "qwen4exp"}) {
    ModelImage image = tiny_model(arch, {.experts_everywhere = false});
    EXPECT_NE(image.find_tensor("blk.0.ffn_gate.weight"), nullptr);
    const std::vector<float> logits = logits_of(image);
    expect_finite(logits);
    // Blocks without experts may say 0.
    Value used = Value::of_u32s({0, 2}), inner = Value::of_u32s({0, 32});
    if (is_hybrid(arch)) used.us.push_back(2), inner.us.push_back(32);
    image.set(std::string(arch) + ".expert_used_count", used);
    image.set(std::string(arch) + ".expert_feed_forward_length", inner);
    expect_same_bits(logits, logits_of(image));
  }
}

// NAME.scale of one half beside weights twice as large: powers of two change no bit.
TEST_P(ValidModel, ScalesBesideWeights) {
  const ModelImage plain = tiny_model(arch(), {.type = DType::F32});
  const auto scaled = [](ModelImage image) {
    std::vector<ImageTensor> scales;
    for (ImageTensor& t : image.tensors) {
      const bool matrix = t.ne.size() > 1 && t.name.ends_with(".weight") && t.name.find("conv1d") == std::string::npos;
      if (!matrix || t.name.find("token_embd") != std::string::npos) continue;
      std::vector<float> values(t.data.size() / sizeof(float));
      std::memcpy(values.data(), t.data.data(), t.data.size());
      for (float& v : values) v *= 2;
      std::memcpy(t.data.data(), values.data(), t.data.size());
      const uint64_t count = t.ne.size() == 3 ? t.ne[2] : 1;
      const std::vector<float> halves(count, 0.5f);
      scales.push_back({t.name.substr(0, t.name.size() - 6) + "scale",
                        0,
                        {count},
                        std::string(reinterpret_cast<const char*>(halves.data()), count * sizeof(float))});
    }
    image.tensors.insert(image.tensors.end(), scales.begin(), scales.end());
    return image;
  };
  const std::vector<float> logits = logits_of(plain);
  expect_same_bits(logits, logits_of(scaled(plain)));
  expect_same_bits(logits, logits_of(scaled(with_fused_gate_up(with_fused_qkv(plain)))));
  if (arch() == "qwen3next") expect_same_bits(logits, logits_of(scaled(with_legacy_ssm_in(plain))));
}

// Every type, in every place of a matrix: the same as the decoded values in F32.
class ValidType : public testing::TestWithParam<DTypeInfo> {};
INSTANTIATE_TEST_SUITE_P(Types, ValidType, testing::ValuesIn(all_dtypes().begin(), all_dtypes().end()),
                         [](const auto& test) { return std::string(test.param.name); });

ModelImage decoded(ModelImage image) {
  for (ImageTensor& t : image.tensors) {
    std::vector<float> values(t.ne[0] * t.rows());
    gguf::decoder(t.dtype())(t.data.data(), values.data(), static_cast<int64_t>(values.size()));
    t.type = static_cast<uint32_t>(DType::F32);
    t.data.assign(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  }
  return image;
}

TEST_P(ValidType, LoadsAndMeansItsValues) {
  for (const char* arch : {"qwen3", "qwen3moe", "qwen4exp"}) {
    SCOPED_TRACE(arch);
    const ModelImage image = tiny_model(arch, {.width = 256, .type = GetParam().type, .layers = 1, .mtp = false});
    size_t of_type = 0;
    for (const ImageTensor& t : image.tensors) of_type += t.dtype() == GetParam().type ? 1 : 0;
    EXPECT_GT(of_type, 8u);
    // The portable arms decode a row and multiply in f32, whatever the type.
    expect_same_bits(logits_of(image, 32, true), logits_of(decoded(image), 32, true));
    const MemoryFile file(image.bytes());
    const CaseResult result = run_model(file.path(), image.bytes().size());
    EXPECT_TRUE(result.generated) << result.error;
  }
}

// Small vectors in any type that holds them: norms are decoded once.
TEST(ValidNorms, AreOfAnyType) {
  for (const DTypeInfo& type : all_dtypes()) {
    if (type.block_elements > 32) continue;  // the head dim of this model
    SCOPED_TRACE(type.name);
    expect_finite(logits_of(tiny_model("qwen3", {.width = 64, .norms = type.type})));
  }
}

}  // namespace
}  // namespace strata::test
