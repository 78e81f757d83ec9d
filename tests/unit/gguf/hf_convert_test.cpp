// Conversion of tiny checkpoints made on the spot: what is written, what is refused, what is warned about.
#include <cmath>

#include "base/mapped_file.h"
#include "gguf/gguf.h"
#include "gguf/hf/convert.h"
#include "gguf/hf/safetensors.h"
#include "gguf/quant.h"
#include "unit/gguf/hf_tiny_models.h"

namespace strata::gguf::hf {
namespace {

using testing::expect_error;
using testing::kTinyDelta;
using testing::kTinyExperts;
using testing::kTinyQwen4;
using testing::TempDir;
using testing::tiny_config;
using testing::tiny_llama;
using testing::tiny_qwen3_next;
using testing::tiny_qwen4_exp;
using testing::TinyCheckpoint;

class HfConvert : public ::testing::Test {
 protected:
  void write(const TinyCheckpoint& checkpoint, const std::string& config) {
    dir_.write("model.safetensors", checkpoint.bytes());
    dir_.write("config.json", config);
  }
  File convert(DType type = DType::F32) {
    options_.type = type;
    warnings_.clear();
    options_.warn = [this](const std::string& line) { warnings_.push_back(line); };
    hf::convert(dir_.path(), output(), options_);
    return File::open(output());
  }
  void refused(const std::string& part, ErrorKind kind = ErrorKind::Model) {
    expect_error(kind, part, [&] { convert(); });
    EXPECT_FALSE(std::filesystem::exists(output()));
    EXPECT_FALSE(std::filesystem::exists(output() + ".partial"));
  }
  std::string output() const { return dir_.file("out.gguf"); }
  bool warned(const std::string& part) const {
    for (const std::string& line : warnings_)
      if (line.find(part) != std::string::npos) return true;
    return false;
  }
  std::vector<float> values(const File& file, const std::string& name) const {
    const TensorInfo* tensor = file.find_tensor(name);
    if (tensor == nullptr) throw Error(ErrorKind::Model, "no tensor " + name);
    std::vector<float> result(tensor->elements());
    decoder(tensor->type)(file.data(*tensor), result.data(), static_cast<int64_t>(result.size()));
    return result;
  }
  std::vector<float> source(const std::string& name) const {
    const Checkpoint checkpoint = Checkpoint::open(dir_.path());
    for (const SourceTensor& tensor : checkpoint.tensors()) {
      if (tensor.name != name) continue;
      std::vector<float> result(tensor.elements);
      std::memcpy(result.data(), checkpoint.data(tensor).data(), tensor.bytes);
      return result;
    }
    throw Error(ErrorKind::Model, "no tensor " + name);
  }

  TempDir dir_;
  ConvertOptions options_;
  std::vector<std::string> warnings_;
};

std::vector<float> plus_one(std::vector<float> values) {
  for (float& value : values) value += 1.0f;
  return values;
}

TEST_F(HfConvert, LlamaHeadTyingAndBiases) {
  TinyCheckpoint t = tiny_llama();
  t.fill("model.layers.0.self_attn.q_proj.bias", {8});
  t.fill("model.layers.0.mlp.up_proj.bias", {6});
  write(t, tiny_config("llama", ""));
  File file = convert();
  EXPECT_EQ(file.get_string("general.architecture"), "llama");
  EXPECT_EQ(file.get_uint("llama.vocab_size", 0, 100), 10u);
  EXPECT_EQ(file.get_uint("llama.rope.dimension_count", 0, 100), 4u);
  EXPECT_EQ(file.get_string("general.name"), std::filesystem::path(dir_.path()).filename().string());
  EXPECT_EQ(values(file, "output.weight"), source("lm_head.weight"));
  EXPECT_EQ(file.find_tensor("blk.1.attn_q.bias"), nullptr);
  const auto bias = values(file, "blk.0.attn_q.bias"), old = source("model.layers.0.self_attn.q_proj.bias");
  EXPECT_EQ(bias, (std::vector<float>{old[0], old[2], old[1], old[3], old[4], old[6], old[5], old[7]}));
  EXPECT_EQ(values(file, "blk.0.ffn_up.bias"), source("model.layers.0.mlp.up_proj.bias"));
  EXPECT_EQ(file.find("tokenizer.ggml.model"), nullptr);
  EXPECT_TRUE(warned("no tokenizer.json"));

  write(t, tiny_config("llama", R"("tie_word_embeddings":true,)"));
  EXPECT_EQ(convert().find_tensor("output.weight"), nullptr);  // left out although the checkpoint has one
  t.erase("lm_head.weight");
  write(t, tiny_config("llama", ""));
  EXPECT_EQ(convert().find_tensor("output.weight"), nullptr);  // the config does not say
}

TEST_F(HfConvert, WhatNoRuleUsesIsRefusedByName) {
  TinyCheckpoint t = tiny_llama();
  t.fill("model.layers.0.self_attn.sinks", {2});
  write(t, tiny_config("llama", ""));
  refused("tensor model.layers.0.self_attn.sinks has no place in a llama file");
  t = tiny_llama();
  t.fill("model.layers.2.input_layernorm.weight", {8});  // beyond num_hidden_layers
  write(t, tiny_config("llama", ""));
  refused("model.layers.2.input_layernorm.weight");
  t = tiny_llama();
  t.fill("mtp.norm.weight", {8});
  write(t, tiny_config("llama", ""));
  refused("mtp.norm.weight");
}

TEST_F(HfConvert, WhatIsMissingOrMisshapenIsNamed) {
  for (const char* name : {"model.norm.weight", "model.layers.1.mlp.down_proj.weight", "model.embed_tokens.weight"}) {
    TinyCheckpoint t = tiny_llama();
    t.erase(name);
    write(t, tiny_config("llama", ""));
    refused(std::string("tensor ") + name + " is missing");
  }
  TinyCheckpoint t = tiny_llama();
  t.erase("lm_head.weight");
  write(t, tiny_config("llama", R"("tie_word_embeddings":false,)"));
  refused("lm_head.weight is missing");
  t = tiny_llama();
  t.fill("model.layers.0.self_attn.k_proj.weight", {8, 4});
  write(t, tiny_config("llama", ""));
  refused("model.layers.0.self_attn.k_proj.weight has shape [8, 4], the config needs [4, 8]");
  t = tiny_llama();
  t.raw("model.layers.0.mlp.up_proj.weight", "F8_E4M3", {6, 8}, 48);
  write(t, tiny_config("llama", ""));
  refused("dtype F8_E4M3");
  t = tiny_llama();
  t.fill("language_model.model.norm.weight", {8});
  write(t, tiny_config("llama", ""));
  refused("model.norm.weight under two names");
}

TEST_F(HfConvert, MixtralNamesAndFusedExpertsGiveTheSameTensors) {
  const std::string config = tiny_config("llama", R"("num_local_experts":2,"num_experts_per_tok":1,)");
  TinyCheckpoint apart = tiny_llama(), fused = tiny_llama();
  std::vector<float> gate_up[2], down[2];
  for (int layer = 0; layer < 2; ++layer) {
    const std::string root = "model.layers." + std::to_string(layer) + ".";
    for (TinyCheckpoint* t : {&apart, &fused})
      for (const char* name : {"gate_proj", "up_proj", "down_proj"}) t->erase(root + "mlp." + name + ".weight");
    apart.fill(root + "block_sparse_moe.gate.weight", {2, 8});
    TinyCheckpoint router;
    fused.f32(root + "mlp.gate.weight", {2, 8}, std::vector<float>(16, 0.25f));
    for (int e = 0; e < 2; ++e) {
      auto numbers = [&](int which) {
        std::vector<float> list(48);
        for (int i = 0; i < 48; ++i) list[i] = static_cast<float>(1000 * layer + 500 * e + 100 * which + i);
        return list;
      };
      const std::string expert = root + "block_sparse_moe.experts." + std::to_string(e);
      apart.f32(expert + ".w1.weight", {6, 8}, numbers(0));
      apart.f32(expert + ".w3.weight", {6, 8}, numbers(1));
      apart.f32(expert + ".w2.weight", {8, 6}, numbers(2));
      for (int which : {0, 1})
        for (float value : numbers(which)) gate_up[layer].push_back(value);
      for (float value : numbers(2)) down[layer].push_back(value);
    }
    fused.f32(root + "mlp.experts.gate_up_proj", {2, 12, 8}, gate_up[layer]);
    fused.f32(root + "mlp.experts.down_proj", {2, 8, 6}, down[layer]);
  }
  std::vector<float> seen[2][3];
  for (int form = 0; form < 2; ++form) {
    write(form == 0 ? apart : fused, config);
    const File file = convert();
    int i = 0;
    for (const char* name : {"blk.1.ffn_gate_exps.weight", "blk.1.ffn_up_exps.weight", "blk.1.ffn_down_exps.weight"})
      seen[form][i++] = values(file, name);
  }
  for (int i = 0; i < 3; ++i) EXPECT_EQ(seen[0][i], seen[1][i]);
  EXPECT_EQ(seen[0][0][0], 1000.0f);
  EXPECT_EQ(seen[0][0][48], 1500.0f);  // expert 1, first gate weight
  EXPECT_EQ(seen[0][1][48], 1600.0f);
  EXPECT_EQ(seen[0][2][48], 1700.0f);
}

TEST_F(HfConvert, Qwen3NextWithItsMtpBlock) {
  write(tiny_qwen3_next(true), tiny_config("qwen3_next", kTinyDelta + kTinyExperts));
  const File file = convert();
  EXPECT_EQ(file.get_uint("qwen3next.block_count", 0, 100), 3u);
  EXPECT_EQ(file.get_uint("qwen3next.nextn_predict_layers", 0, 100), 1u);
  EXPECT_EQ(file.get_uints("qwen3next.attention.recurrent_layers", 0, 1), (std::vector<uint64_t>{1, 0, 0}));
  EXPECT_EQ(file.get_uint("qwen3next.full_attention_interval", 0, 100), 2u);
  EXPECT_EQ(file.get_uint("qwen3next.ssm.state_size", 0, 100), 2u);
  EXPECT_EQ(file.get_uint("qwen3next.ssm.inner_size", 0, 100), 12u);
  EXPECT_TRUE(warned("key dimension 2 and value dimension 3"));
  EXPECT_EQ(values(file, "blk.2.nextn.eh_proj.weight"), source("mtp.fc.weight"));
  EXPECT_EQ(values(file, "blk.2.nextn.enorm.weight"), plus_one(source("mtp.pre_fc_norm_embedding.weight")));
  EXPECT_EQ(values(file, "blk.2.nextn.hnorm.weight"), plus_one(source("mtp.pre_fc_norm_hidden.weight")));
  EXPECT_EQ(values(file, "blk.2.nextn.shared_head_norm.weight"), plus_one(source("mtp.norm.weight")));
  EXPECT_EQ(values(file, "blk.2.attn_q.weight"), source("mtp.layers.0.self_attn.q_proj.weight"));
  EXPECT_EQ(values(file, "blk.0.ssm_norm.weight"), source("model.layers.0.linear_attn.norm.weight"));
  EXPECT_EQ(values(file, "blk.0.ssm_ba.weight"), source("model.layers.0.linear_attn.in_proj_ba.weight"));
  // Rows of one key head: q 2, k 2, v 6, z 6.
  const auto qkvz = source("model.layers.0.linear_attn.in_proj_qkvz.weight");
  const auto qkv = values(file, "blk.0.attn_qkv.weight"), z = values(file, "blk.0.attn_gate.weight");
  for (int k = 0; k < 2; ++k)
    for (int column = 0; column < 8; ++column) {
      for (int x = 0; x < 2; ++x) {
        EXPECT_EQ(qkv[(2 * k + x) * 8 + column], qkvz[(16 * k + x) * 8 + column]);
        EXPECT_EQ(qkv[(4 + 2 * k + x) * 8 + column], qkvz[(16 * k + 2 + x) * 8 + column]);
      }
      for (int x = 0; x < 6; ++x) {
        EXPECT_EQ(qkv[(8 + 6 * k + x) * 8 + column], qkvz[(16 * k + 4 + x) * 8 + column]);
        EXPECT_EQ(z[(6 * k + x) * 8 + column], qkvz[(16 * k + 10 + x) * 8 + column]);
      }
    }
}

TEST_F(HfConvert, IncompleteMtpIsLeftOutWithAWarning) {
  TinyCheckpoint t = tiny_qwen3_next(true);
  t.erase("mtp.layers.0.self_attn.k_norm.weight");
  write(t, tiny_config("qwen3_next", kTinyDelta + kTinyExperts));
  File file = convert();
  EXPECT_EQ(file.get_uint("qwen3next.block_count", 0, 100), 2u);
  EXPECT_EQ(file.find("qwen3next.nextn_predict_layers"), nullptr);
  for (const TensorInfo& tensor : file.tensors()) EXPECT_EQ(tensor.name.find("blk.2."), std::string::npos);
  EXPECT_TRUE(warned("MTP tensors are left out"));
  EXPECT_TRUE(warned("mtp.layers.0.self_attn.k_norm.weight is missing"));

  t = tiny_qwen3_next(true);
  t.fill("mtp.layers.0.novelty.weight", {8});
  write(t, tiny_config("qwen3_next", kTinyDelta + kTinyExperts));
  EXPECT_EQ(convert().get_uint("qwen3next.block_count", 0, 100), 2u);
  EXPECT_TRUE(warned("mtp.layers.0.novelty.weight has no place"));
}

TEST_F(HfConvert, Qwen4ExpMtpBlock) {
  write(tiny_qwen4_exp(true), tiny_config("qwen4_exp", kTinyDelta + kTinyExperts + kTinyQwen4));
  const File file = convert();
  EXPECT_EQ(file.get_uint("qwen4exp.block_count", 0, 100), 3u);
  EXPECT_EQ(file.get_uints("qwen4exp.attention.compress_ratios", 0, 9), (std::vector<uint64_t>{0, 2, 0}));
  const auto joined = values(file, "blk.2.nextn.eh_proj.weight");
  const auto left = source("model.mtp.fc_embedding.weight"), right = source("model.mtp.fc_hidden.weight");
  ASSERT_EQ(joined.size(), 128u);
  for (int row = 0; row < 8; ++row)
    for (int column = 0; column < 8; ++column) {
      EXPECT_EQ(joined[row * 16 + column], left[row * 8 + column]);
      EXPECT_EQ(joined[row * 16 + 8 + column], right[row * 8 + column]);
    }
  EXPECT_EQ(values(file, "blk.2.nextn.hc_head_norm.weight"),
            plus_one(source("model.mtp.hyper_connection_mixer.hc_norm.weight")));
  EXPECT_EQ(values(file, "blk.2.nextn.hnorm.weight"), plus_one(source("model.mtp.pre_fc_norm_hidden.weight")));
  EXPECT_NE(file.find_tensor("blk.2.indexer.k_proj.weight"), nullptr);
  EXPECT_EQ(file.find("qwen4exp.ssm.output_gate"), nullptr);
  EXPECT_EQ(file.find("qwen4exp.ple.layers"), nullptr);
}

TEST_F(HfConvert, NgramConstantsAreExactAndChecked) {
  auto with_table = [](int64_t vocab_size) {
    TinyCheckpoint t = tiny_qwen4_exp(false);
    const std::string p = "model.layers.0.ple.";
    t.fill(p + "key_proj.weight", {16, 4});
    t.fill(p + "value_proj.weight", {8, 4});
    for (const char* norm : {"norm_key", "norm_query", "norm_conv"}) t.fill(p + norm + ".weight", {16});
    t.fill(p + "conv1d.weight", {16, 1, 4});
    for (const char* part : {"0", "1"}) t.fill(p + "ple_embedding.ngram_embedding.shard_" + part + ".weight", {6, 2});
    t.i64(p + "ple_embedding.layer_multipliers", {(1ll << 44) + 1, 3, 5});
    t.i64(p + "ple_embedding.ngram_heads_offsets", {0, 5});
    t.i64(p + "ple_embedding.ngram_heads_vocab_sizes", {5, vocab_size});
    return t;
  };
  const std::string config =
      tiny_config("qwen4_exp", kTinyDelta + kTinyExperts + kTinyQwen4 +
                                   R"("ple_layer_ids":[1],"ple_embed_dim":4,"heads_per_ngram":1,"split_ngram_parts":2,)"
                                   R"("eos_token_id":[7,8],"image_token_id":9,)");
  write(with_table(7), config);
  const File file = convert(DType::Q8_0);
  EXPECT_EQ(file.get_uints("qwen4exp.ple.layer_multipliers", 0, ~0ull),
            (std::vector<uint64_t>{(1ull << 44) + 1, 3, 5}));
  EXPECT_EQ(file.get_uints("qwen4exp.ple.head_offsets", 0, 100), (std::vector<uint64_t>{0, 5}));
  EXPECT_EQ(file.get_uint("qwen4exp.ple.eos_token_id", 0, 100), 7u);
  EXPECT_EQ(file.get_uint("qwen4exp.ple.image_token_id", 0, 100), 9u);
  EXPECT_EQ(file.get_uint("qwen4exp.embedding_length_per_layer_input", 0, 100), 2u);
  EXPECT_TRUE(warned("first of 2 end tokens"));
  EXPECT_EQ(file.find_tensor("per_layer_token_embd.weight")->type, DType::F16);  // rows of 2 are no blocks of 32
  EXPECT_EQ(file.find_tensor("per_layer_token_embd.weight")->ne[1], 12u);
  std::filesystem::remove(output());

  write(with_table(8), config);
  refused("head 1 of model.layers.0.ple.ple_embedding. reaches beyond its table of 12 rows");
  TinyCheckpoint t = with_table(7);
  t.f32("model.layers.0.ple.ple_embedding.layer_multipliers", {3}, {1, 3, 5});
  write(t, config);
  refused("layer_multipliers must hold 3 64-bit integers");
  t = with_table(7);
  t.i64("model.layers.0.ple.ple_embedding.layer_multipliers", {1, -3, 5});
  write(t, config);
  refused("layer_multipliers holds a negative value");
  t = with_table(7);
  t.erase("model.layers.0.ple.ple_embedding.ngram_embedding.shard_1.weight");
  write(t, config);
  refused("shard_1.weight is missing");
  t = with_table(7);
  t.fill("model.layers.0.ple.ple_embedding.ngram_embedding.shard_1.weight", {6, 3});
  write(t, config);
  refused("shard_1.weight must be a real matrix with rows of 2");
}

TEST_F(HfConvert, OutputGateAndExpertNormAreWrittenWhenUnusual) {
  write(tiny_qwen4_exp(false), tiny_config("qwen4_exp", kTinyDelta + kTinyExperts + kTinyQwen4 +
                                                            R"("output_gate_type":null,"norm_topk_prob":false,)"));
  const File file = convert();
  EXPECT_EQ(file.get_string("qwen4exp.ssm.output_gate"), "silu");
  EXPECT_TRUE(warned("output gate is silu"));
  EXPECT_EQ(file.get_bool("qwen4exp.expert_weights_norm"), false);
  EXPECT_TRUE(warned("norm_topk_prob"));
}

TEST_F(HfConvert, YarnKeys) {
  write(tiny_llama(), tiny_config("llama", R"("rope_scaling":{"rope_type":"yarn","factor":4,"attention_factor":1.5,)"
                                           R"("original_max_position_embeddings":16,"beta_fast":30},)"));
  const File file = convert();
  EXPECT_EQ(file.get_string("llama.rope.scaling.type"), "yarn");
  EXPECT_EQ(file.get_real("llama.rope.scaling.factor"), 4.0);
  EXPECT_EQ(file.get_uint("llama.rope.scaling.original_context_length", 0, 100), 16u);
  EXPECT_EQ(file.get_real("llama.rope.scaling.yarn_beta_fast"), 30.0);
  EXPECT_EQ(file.find("llama.rope.scaling.yarn_beta_slow"), nullptr);
  EXPECT_EQ(file.get_real("llama.rope.scaling.yarn_attn_factor"), 1.5);
  EXPECT_TRUE(warned("attention_factor"));
}

TEST_F(HfConvert, UnusualValuesAreReported) {
  TinyCheckpoint t = tiny_llama();
  std::vector<float> wild(48, 0.5f);
  wild[3] = 70000.0f;
  t.f32("model.layers.0.mlp.up_proj.weight", {6, 8}, wild);
  wild[4] = NAN;
  t.f32("model.layers.1.mlp.up_proj.weight", {6, 8}, wild);
  write(t, tiny_config("llama", ""));
  convert(DType::F16);
  EXPECT_TRUE(warned("blk.0.ffn_up.weight holds 1 values beyond the range of F16"));
  EXPECT_TRUE(warned("blk.1.ffn_up.weight holds 1 NaN or infinite values"));
  convert(DType::BF16);
  EXPECT_FALSE(warned("beyond the range"));
}

TEST_F(HfConvert, TypesWithoutEncoderAreRefusedFirst) {
  write(tiny_llama(), tiny_config("llama", ""));
  options_.warn = nullptr;
  options_.type = DType::IQ2_XXS;
  expect_error(ErrorKind::Argument, "Q8_0", [&] { hf::convert(dir_.path(), output(), options_); });
  EXPECT_FALSE(std::filesystem::exists(output()));
}

TEST_F(HfConvert, CancellingLeavesWhatWasThere) {
  write(tiny_llama(), tiny_config("llama", ""));
  dir_.write("out.gguf", "old");
  std::atomic<bool> cancelled{false};
  options_.cancelled = &cancelled;
  options_.progress = [&](uint64_t done, uint64_t total, const std::string& tensor) {
    EXPECT_LE(done, total);
    if (tensor == "blk.1.attn_k.weight") cancelled = true;
  };
  expect_error(ErrorKind::Interrupted, "nothing was written", [&] { convert(); });
  EXPECT_EQ(std::filesystem::file_size(output()), 3u);
  EXPECT_FALSE(std::filesystem::exists(output() + ".partial"));
}

TEST_F(HfConvert, DescriptionAgreesWithTheFile) {
  write(tiny_qwen3_next(true), tiny_config("qwen3_next", kTinyDelta + kTinyExperts));
  const File file = convert(DType::F16);
  const ConversionSummary summary = describe_conversion(dir_.path(), options_);
  EXPECT_EQ(summary.architecture, "qwen3next");
  EXPECT_EQ(summary.tensors, file.tensors().size());
  EXPECT_EQ(summary.tensor_bytes, file.data_bytes());
  EXPECT_EQ(summary.mtp_blocks, 1u);
  EXPECT_FALSE(summary.vocabulary);
}

TEST_F(HfConvert, TheNumberOfThreadsChangesNoByte) {
  TinyCheckpoint t = tiny_llama();
  t.fill("model.embed_tokens.weight", {4096, 256});  // several shares of blocks
  t.fill("lm_head.weight", {4096, 256});
  for (const std::string layer : {"model.layers.0.", "model.layers.1."}) {
    for (const char* norm : {"input_layernorm", "post_attention_layernorm"}) t.fill(layer + norm + ".weight", {256});
    t.fill(layer + "self_attn.q_proj.weight", {8, 256});
    for (const char* name : {"k_proj", "v_proj"}) t.fill(layer + "self_attn." + name + ".weight", {4, 256});
    t.fill(layer + "self_attn.o_proj.weight", {256, 8});
    for (const char* name : {"gate_proj", "up_proj"}) t.fill(layer + "mlp." + name + ".weight", {6, 256});
    t.fill(layer + "mlp.down_proj.weight", {256, 6});
  }
  t.fill("model.norm.weight", {256});
  write(t, tiny_config("llama", R"("hidden_size":256,"vocab_size":4096,)"));
  for (const DType type : {DType::Q4_K, DType::F16}) {
    options_.threads = 1;
    convert(type);
    const std::string one = read_file(output(), 1u << 26);
    options_.threads = 3;
    convert(type);
    EXPECT_TRUE(read_file(output(), 1u << 26) == one) << to_string(type);
  }
}

TEST_F(HfConvert, AFullDiskIsOneLineAndLeavesNothing) {
  write(tiny_llama(), tiny_config("llama", ""));
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  std::filesystem::create_symlink("/dev/full", output() + ".partial");
  refused("cannot write", ErrorKind::File);
}

}  // namespace
}  // namespace strata::gguf::hf
