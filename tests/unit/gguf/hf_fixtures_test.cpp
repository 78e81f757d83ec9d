// Converts every checkpoint of the optional fixtures and compares the file with what gguf.md, sections 3 and 5,
// promise: the exact set of tensors and shapes, and the values, both written here a second time and element by element.
#include <algorithm>
#include <cmath>

#include "gguf/gguf.h"
#include "gguf/hf/convert.h"
#include "gguf/hf/names.h"
#include "gguf/hf/safetensors.h"
#include "gguf/quant.h"
#include "unit/gguf/hf_test_util.h"

namespace strata::gguf::hf {
namespace {

using testing::TempDir;
namespace fs = std::filesystem;
using Ne = std::vector<uint64_t>;

const fs::path kFixtures = fs::path(STRATA_SOURCE_DIR) / ".." / "shared" / "fixtures" / "hf";

std::vector<fs::path> checkpoints() {
  std::vector<fs::path> list;
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(kFixtures, absent))
    if (fs::exists(entry.path() / "config.json")) list.push_back(entry.path());
  std::sort(list.begin(), list.end());
  return list;
}

struct Converted {
  Converted(const fs::path& path, DType type)
      : config(read_config(path.string(), [](const std::string&) {})),
        checkpoint(Checkpoint::open(path.string())),
        file(convert_to(path, type)) {}

  File convert_to(const fs::path& path, DType type) {
    ConvertOptions options;
    options.type = type;
    options.warn = [this](const std::string& line) { warnings.push_back(line); };
    hf::convert(path.string(), dir.file("out.gguf"), options);
    return File::open(dir.file("out.gguf"));
  }
  std::vector<float> out(const std::string& name) const {
    const TensorInfo* tensor = file.find_tensor(name);
    if (tensor == nullptr) throw Error(ErrorKind::Model, "no tensor " + name);
    std::vector<float> values(tensor->elements());
    decoder(tensor->type)(file.data(*tensor), values.data(), static_cast<int64_t>(values.size()));
    return values;
  }
  std::vector<float> hf(const std::string& name) const {
    for (const SourceTensor& tensor : checkpoint.tensors()) {
      if (canonical_name(tensor.name) != name) continue;
      const std::byte* bytes = checkpoint.data(tensor).data();
      std::vector<float> values(tensor.elements);
      for (size_t i = 0; i < values.size(); ++i) {
        uint16_t half;
        if (tensor.type == SourceType::F32) std::memcpy(&values[i], bytes + 4 * i, 4);
        std::memcpy(&half, bytes + 2 * i, 2);
        if (tensor.type == SourceType::BF16) values[i] = bf16_to_f32(half);
      }
      return values;
    }
    throw Error(ErrorKind::Model, "no HF tensor " + name);
  }

  TempDir dir;
  std::vector<std::string> warnings;
  Config config;
  Checkpoint checkpoint;
  File file;
};

// gguf.md, section 3: every tensor of the file with its extents. Fixtures have no complete MTP block.
class Expected {
 public:
  explicit Expected(const Config& config) : c(config) {
    add("token_embd.weight", {c.hidden, c.vocab});
    if (!c.tied.value_or(false)) add("output.weight", {c.hidden, c.vocab});
    if (c.family == Family::Qwen4Exp)
      streams("output_hc_", false);
    else
      add("output_norm.weight", {c.hidden});
    if (c.rope.scaling == RopeScaling::Llama3) add("rope_freqs.weight", {c.head_dim / 2});
    for (uint64_t i = 0; i < c.layers; ++i) layer(i);
  }
  std::map<std::string, Ne> tensors;

 private:
  void add(const std::string& name, const Ne& ne) { tensors[name] = ne; }
  void streams(const std::string& b, bool inject) {
    const uint64_t wide = c.streams * c.hidden;
    add(b + "norm.weight", {wide});
    add(b + "down.weight", {wide, c.stream_rank});
    add(b + "up.weight", {c.stream_rank, wide});
    if (inject) add(b + "inject.weight", {wide, c.streams});
  }
  void layer(uint64_t i) {
    const std::string b = "blk." + std::to_string(i) + ".";
    if (c.family == Family::Qwen4Exp) {
      streams(b + "hc_attn_", true);
      streams(b + "hc_ffn_", true);
    } else {
      add(b + "attn_norm.weight", {c.hidden});
      add(b + (is_hybrid(c.family) ? "post_attention_norm.weight" : "ffn_norm.weight"), {c.hidden});
    }
    c.recurrent[i] ? delta_net(b) : attention(b);
    c.dense[i] ? dense(b) : experts(b);
    if (std::count(c.ple.layers.begin(), c.ple.layers.end(), i) > 0) ngrams(b);
  }
  void attention(const std::string& b) {
    const uint64_t heads = c.heads * c.head_dim, kv = c.kv_heads * c.head_dim;
    add(b + "attn_q.weight", {c.hidden, is_hybrid(c.family) ? 2 * heads : heads});
    add(b + "attn_k.weight", {c.hidden, kv});
    add(b + "attn_v.weight", {c.hidden, kv});
    add(b + "attn_output.weight", {heads, c.hidden});
    if (c.family != Family::Llama)
      for (const char* name : {"attn_q_norm.weight", "attn_k_norm.weight"}) add(b + name, {c.head_dim});
    if (c.indexer.heads == 0) return;
    add(b + "indexer.q_proj.weight", {c.hidden, c.indexer.heads * c.indexer.head_dim});
    add(b + "indexer.k_proj.weight", {c.hidden, c.indexer.head_dim});
    for (const char* name : {"indexer.q_norm.weight", "indexer.k_norm.weight"}) add(b + name, {c.indexer.head_dim});
  }
  void delta_net(const std::string& b) {
    const uint64_t values = c.delta.value_heads * c.delta.value_dim;
    const uint64_t channels = 2 * c.delta.key_heads * c.delta.key_dim + values;
    add(b + "attn_qkv.weight", {c.hidden, channels});
    add(b + "attn_gate.weight", {c.hidden, values});
    add(b + "ssm_conv1d.weight", {4, channels});
    add(b + "ssm_dt.bias", {c.delta.value_heads});
    add(b + "ssm_a", {c.delta.value_heads});
    add(b + "ssm_norm.weight", {c.delta.value_dim});
    add(b + "ssm_out.weight", {values, c.hidden});
    if (c.family == Family::Qwen3Next)
      add(b + "ssm_ba.weight", {c.hidden, 2 * c.delta.value_heads});
    else
      for (const char* name : {"ssm_beta.weight", "ssm_alpha.weight"}) add(b + name, {c.hidden, c.delta.value_heads});
  }
  void dense(const std::string& b) {
    add(b + "ffn_gate.weight", {c.hidden, c.intermediate});
    add(b + "ffn_up.weight", {c.hidden, c.intermediate});
    add(b + "ffn_down.weight", {c.intermediate, c.hidden});
  }
  void experts(const std::string& b) {
    const uint64_t inner = c.experts.hidden, n = c.experts.count, shared = c.experts.shared_hidden;
    add(b + "ffn_gate_inp.weight", {c.hidden, n});
    add(b + "ffn_gate_exps.weight", {c.hidden, inner, n});
    add(b + "ffn_up_exps.weight", {c.hidden, inner, n});
    add(b + "ffn_down_exps.weight", {inner, c.hidden, n});
    if (!is_hybrid(c.family)) return;
    add(b + "ffn_gate_inp_shexp.weight", {c.hidden, 1});
    add(b + "ffn_gate_shexp.weight", {c.hidden, shared});
    add(b + "ffn_up_shexp.weight", {c.hidden, shared});
    add(b + "ffn_down_shexp.weight", {shared, c.hidden});
  }
  void ngrams(const std::string& b) {
    const uint64_t wide = c.streams * c.hidden;
    add(b + "ple_key.weight", {c.ple.embed_dim, wide});
    add(b + "ple_value.weight", {c.ple.embed_dim, c.hidden});
    for (const char* name : {"ple_norm_key.weight", "ple_norm_query.weight", "ple_norm_conv.weight"})
      add(b + name, {wide});
    add(b + "ple_conv1d.weight", {4, wide});
    add("per_layer_token_embd.weight", {});  // rows: checked by the values
  }
  const Config& c;
};

void check_shapes(const Converted& m) {
  std::map<std::string, Ne> expected = Expected(m.config).tensors;
  for (const TensorInfo& tensor : m.file.tensors()) {
    const auto found = expected.find(tensor.name);
    if (found == expected.end()) {
      ADD_FAILURE() << "unexpected tensor " << tensor.name;
      continue;
    }
    if (!found->second.empty()) {
      EXPECT_EQ(Ne(tensor.ne, tensor.ne + tensor.dims), found->second) << tensor.name;
    }
    expected.erase(found);
  }
  for (const auto& [name, ne] : expected) ADD_FAILURE() << "missing tensor " << name;
}

// Values of the delta net in tiled order (all families but qwen3next): new head r·Hk + k was head k·R + r.
void check_tiled_delta_net(const Converted& m, const std::string& b, const std::string& hf) {
  const auto& d = m.config.delta;
  const uint64_t H = m.config.hidden, R = d.value_heads / d.key_heads, dv = d.value_dim;
  const uint64_t keys = 2 * d.key_heads * d.key_dim, values = d.value_heads * dv;
  const auto qkv = m.out(b + "attn_qkv.weight"), old_qkv = m.hf(hf + "in_proj_qkv.weight");
  const auto z = m.out(b + "attn_gate.weight"), old_z = m.hf(hf + "in_proj_z.weight");
  const auto conv = m.out(b + "ssm_conv1d.weight"), old_conv = m.hf(hf + "conv1d.weight");
  const auto out = m.out(b + "ssm_out.weight"), old_out = m.hf(hf + "out_proj.weight");
  const auto beta = m.out(b + "ssm_beta.weight"), old_beta = m.hf(hf + "in_proj_b.weight");
  const auto alpha = m.out(b + "ssm_alpha.weight"), old_alpha = m.hf(hf + "in_proj_a.weight");
  const auto a = m.out(b + "ssm_a"), old_a = m.hf(hf + "A_log");
  const auto dt = m.out(b + "ssm_dt.bias"), old_dt = m.hf(hf + "dt_bias");
  EXPECT_TRUE(std::equal(qkv.begin(), qkv.begin() + static_cast<long>(keys * H), old_qkv.begin()));
  EXPECT_TRUE(std::equal(conv.begin(), conv.begin() + static_cast<long>(keys * 4), old_conv.begin()));
  uint64_t wrong = 0;
  for (uint64_t k = 0; k < d.key_heads; ++k)
    for (uint64_t r = 0; r < R; ++r) {
      const uint64_t to = r * d.key_heads + k, from = k * R + r;
      wrong += dt[to] != old_dt[from];
      wrong += a[to] != -static_cast<float>(std::exp(static_cast<double>(old_a[from])));
      for (uint64_t i = 0; i < H; ++i)
        wrong += (beta[to * H + i] != old_beta[from * H + i]) + (alpha[to * H + i] != old_alpha[from * H + i]);
      for (uint64_t x = 0; x < dv; ++x) {
        const uint64_t t = to * dv + x, f = from * dv + x;
        for (uint64_t tap = 0; tap < 4; ++tap) wrong += conv[(keys + t) * 4 + tap] != old_conv[(keys + f) * 4 + tap];
        for (uint64_t i = 0; i < H; ++i) {
          wrong += qkv[(keys + t) * H + i] != old_qkv[(keys + f) * H + i];
          wrong += z[t * H + i] != old_z[f * H + i];
          wrong += out[i * values + t] != old_out[i * values + f];
        }
      }
    }
  EXPECT_EQ(wrong, 0u) << b;
}

// w -> w + offset, exact in f32 for both.
void check_offset(const Converted& m, const std::string& name, const std::string& hf, float offset) {
  auto expected = m.hf(hf);
  for (float& value : expected) value += offset;
  EXPECT_EQ(m.out(name), expected) << name;
}

void check_layer(const Converted& m, uint64_t i) {
  const Config& c = m.config;
  const std::string b = "blk." + std::to_string(i) + ".", hf = "model.layers." + std::to_string(i) + ".";
  const float one = is_hybrid(c.family) ? 1.0f : 0.0f;
  if (c.family == Family::Qwen4Exp) {
    check_offset(m, b + "hc_ffn_norm.weight", hf + "mlp_hyper_connection.hc_norm.weight", 1);
    check_offset(m, b + "hc_attn_inject.weight", hf + "attn_hyper_connection.block_inject_weight.weight", 0);
  } else {
    check_offset(m, b + "attn_norm.weight", hf + "input_layernorm.weight", one);
  }
  if (c.recurrent[i]) {
    check_offset(m, b + "ssm_norm.weight", hf + "linear_attn.norm.weight", 0);
    if (c.family != Family::Qwen3Next) check_tiled_delta_net(m, b, hf + "linear_attn.");
  } else if (c.family == Family::Llama) {
    const auto q = m.out(b + "attn_q.weight"), old = m.hf(hf + "self_attn.q_proj.weight");
    for (uint64_t h = 0; h < c.heads; ++h)
      for (uint64_t j = 0; j < c.head_dim / 2; ++j)
        for (uint64_t s = 0; s < 2; ++s)
          EXPECT_EQ(q[(h * c.head_dim + 2 * j + s) * c.hidden + 5],
                    old[(h * c.head_dim + s * c.head_dim / 2 + j) * c.hidden + 5]);
  } else {
    check_offset(m, b + "attn_q.weight", hf + "self_attn.q_proj.weight", 0);
    check_offset(m, b + "attn_k_norm.weight", hf + "self_attn.k_norm.weight", one);
  }
  if (!c.recurrent[i] && c.indexer.heads > 0) {
    auto both = m.out(b + "indexer.q_proj.weight");
    const auto key = m.out(b + "indexer.k_proj.weight");
    both.insert(both.end(), key.begin(), key.end());
    EXPECT_EQ(both, m.hf(hf + "self_attn.indexer.index_qk_proj.weight"));
    check_offset(m, b + "indexer.k_norm.weight", hf + "self_attn.indexer.k_layernorm.weight", 1);
  }
  if (c.dense[i]) check_offset(m, b + "ffn_down.weight", hf + "mlp.down_proj.weight", 0);
}

void check_tables(const Converted& m) {
  const Config& c = m.config;
  if (c.ple.layers.empty()) return;
  std::vector<float> rows;
  std::vector<uint64_t> first;
  const uint64_t width = c.ple.embed_dim / c.ple.heads();
  for (const uint64_t layer : c.ple.layers) {
    first.push_back(rows.size() / width);
    const std::string ple = "model.layers." + std::to_string(layer) + ".ple.";
    for (uint64_t part = 0; part < c.ple.parts; ++part)
      for (float value : m.hf(ple + "ple_embedding.ngram_embedding.shard_" + std::to_string(part) + ".weight"))
        rows.push_back(value);
    check_offset(m, "blk." + std::to_string(layer) + ".ple_norm_query.weight", ple + "norm_query.weight", 1);
    check_offset(m, "blk." + std::to_string(layer) + ".ple_conv1d.weight", ple + "conv1d.weight", 0);
  }
  EXPECT_EQ(m.out("per_layer_token_embd.weight"), rows);
  const auto offsets = *m.file.get_uints("qwen4exp.ple.head_offsets", 0, ~0ull);
  const auto sizes = *m.file.get_uints("qwen4exp.ple.head_vocab_sizes", 0, ~0ull);
  ASSERT_EQ(offsets.size(), c.ple.layers.size() * c.ple.heads());
  for (size_t h = 0; h < offsets.size(); ++h) {
    const bool starts_module = h % c.ple.heads() == 0;  // running sums of the sizes inside a module
    EXPECT_EQ(offsets[h], starts_module ? first[h / c.ple.heads()] : offsets[h - 1] + sizes[h - 1]);
  }
  EXPECT_EQ(*m.file.get_uints("qwen4exp.ple.layers", 0, 100), c.ple.layers);
}

void check_metadata(const Converted& m) {
  const Config& c = m.config;
  const std::string arch = std::string(architecture(c.family)) + ".";
  for (const char* key : {"attention.key_length", "attention.value_length", "rope.dimension_count", "context_length"})
    EXPECT_NE(m.file.find(arch + key), nullptr) << key;
  EXPECT_EQ(m.file.get_uint(arch + "block_count", 0, 9999), c.layers);
  if (is_hybrid(c.family)) {
    EXPECT_EQ(m.file.get_uints(arch + "attention.recurrent_layers", 0, 1),
              std::vector<uint64_t>(c.recurrent.begin(), c.recurrent.end()));
  }
  const bool sections = is_hybrid(c.family) && c.family != Family::Qwen3Next;
  EXPECT_EQ(m.file.find(arch + "rope.dimension_sections") != nullptr, sections);
}

TEST(HfFixtures, EveryCheckpointConvertsToItsExpectedTensors) {
  const auto paths = checkpoints();
  if (paths.empty()) GTEST_SKIP() << "no fixtures at " << kFixtures;
  for (const fs::path& path : paths) {
    SCOPED_TRACE(path.filename().string());
    const Converted f32(path, DType::F32), f16(path, DType::F16);
    check_shapes(f32);
    check_shapes(f16);
    check_metadata(f32);
    check_offset(f32, "token_embd.weight", "model.embed_tokens.weight", 0);
    for (uint64_t i = 0; i < f32.config.layers; ++i) check_layer(f32, i);
    check_tables(f32);
    for (const TensorInfo& tensor : f16.file.tensors()) {
      auto expected = f32.out(tensor.name);
      const bool half = tensor.type == DType::F16;
      EXPECT_TRUE(half || tensor.type == DType::F32) << tensor.name;
      EXPECT_EQ(half, tensor.dims > 1 && tensor.name.find("gate_inp") == std::string::npos &&
                          tensor.name.find("ssm_conv1d") == std::string::npos)
          << tensor.name;
      if (half) std::for_each(expected.begin(), expected.end(), [](float& v) { v = f16_to_f32(f32_to_f16(v)); });
      EXPECT_EQ(f16.out(tensor.name), expected) << tensor.name;
    }
  }
}

TEST(HfFixtures, ReleaseNamesGiveTheSameBytes) {
  const fs::path plain = kFixtures / "qwen4_exp_ple2_sparse", release = kFixtures / "qwen4_exp_ple2_sparse_release";
  if (!fs::exists(plain) || !fs::exists(release)) GTEST_SKIP() << "no fixtures at " << kFixtures;
  const Converted a(plain, DType::F32), b(release, DType::F32);
  ASSERT_EQ(a.file.tensors().size(), b.file.tensors().size());
  for (const TensorInfo& tensor : a.file.tensors()) {
    const TensorInfo* other = b.file.find_tensor(tensor.name);
    ASSERT_NE(other, nullptr) << tensor.name;
    EXPECT_EQ(other->type, tensor.type);
    ASSERT_EQ(other->bytes, tensor.bytes) << tensor.name;
    EXPECT_EQ(std::memcmp(a.file.data(tensor), b.file.data(*other), tensor.bytes), 0) << tensor.name;
  }
  const auto mentions = [&](const std::string& part) {
    return std::any_of(b.warnings.begin(), b.warnings.end(),
                       [&](const std::string& line) { return line.find(part) != std::string::npos; });
  };
  EXPECT_TRUE(mentions("mtp.norm.weight"));
  EXPECT_TRUE(mentions("2 tensors of other modalities"));
  EXPECT_EQ(b.file.get_uint("qwen4exp.ple.image_token_id", 0, 1000), 310u);
}

TEST(HfFixtures, WhatOtherReadersMayMissIsSaid) {
  if (checkpoints().empty()) GTEST_SKIP() << "no fixtures at " << kFixtures;
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases{
      {"qwen3_moe_nonorm", {"norm_topk_prob", "1 dense layers"}},
      {"qwen3_5_uneven", {"value dimension 24", "layer pattern is irregular"}},
      {"qwen4_exp_ple", {"output gate is silu"}},
      {"qwen4_exp_ple2_sparse", {"2 n-gram modules", "first of 2 end tokens"}},
      {"qwen3_next", {}}};
  for (const auto& [name, parts] : cases) {
    const Converted m(kFixtures / name, DType::F32);
    EXPECT_EQ(m.warnings.size(), parts.size() + 1) << name;  // and the missing vocabulary
    for (const std::string& part : parts)
      EXPECT_TRUE(std::any_of(m.warnings.begin(), m.warnings.end(),
                              [&](const std::string& line) { return line.find(part) != std::string::npos; }))
          << name << ": " << part;
  }
}

TEST(HfFixtures, Qwen3NextKeepsValueHeadsInOrder) {
  const fs::path path = kFixtures / "qwen3_next";
  if (!fs::exists(path)) GTEST_SKIP() << "no fixtures at " << kFixtures;
  const Converted m(path, DType::F32);
  const auto& d = m.config.delta;
  const uint64_t H = m.config.hidden, rows = d.value_heads / d.key_heads * d.value_dim,
                 group = 2 * d.key_dim + 2 * rows;
  const auto old = m.hf("model.layers.0.linear_attn.in_proj_qkvz.weight");
  const auto qkv = m.out("blk.0.attn_qkv.weight"), z = m.out("blk.0.attn_gate.weight");
  for (uint64_t k = 0; k < d.key_heads; ++k)
    for (uint64_t i = 0; i < H; ++i) {
      for (uint64_t x = 0; x < d.key_dim; ++x) {
        EXPECT_EQ(qkv[(k * d.key_dim + x) * H + i], old[(k * group + x) * H + i]);
        EXPECT_EQ(qkv[((d.key_heads + k) * d.key_dim + x) * H + i], old[(k * group + d.key_dim + x) * H + i]);
      }
      for (uint64_t x = 0; x < rows; ++x) {
        EXPECT_EQ(qkv[(2 * d.key_heads * d.key_dim + k * rows + x) * H + i],
                  old[(k * group + 2 * d.key_dim + x) * H + i]);
        EXPECT_EQ(z[(k * rows + x) * H + i], old[(k * group + 2 * d.key_dim + rows + x) * H + i]);
      }
    }
  check_offset(m, "blk.0.ssm_ba.weight", "model.layers.0.linear_attn.in_proj_ba.weight", 0);
  check_offset(m, "blk.0.ssm_out.weight", "model.layers.0.linear_attn.out_proj.weight", 0);
}

TEST(HfFixtures, QuantisedTypesFallBackWhereRowsDoNotFit) {
  const fs::path path = kFixtures / "qwen3_moe";
  if (!fs::exists(path)) GTEST_SKIP() << "no fixtures at " << kFixtures;
  const Converted m(path, DType::Q8_0);
  EXPECT_EQ(m.file.find_tensor("blk.0.attn_q.weight")->type, DType::Q8_0);         // rows of 64
  EXPECT_EQ(m.file.find_tensor("blk.0.ffn_gate_exps.weight")->type, DType::Q8_0);  // rows of 64
  EXPECT_EQ(m.file.find_tensor("blk.0.ffn_down_exps.weight")->type, DType::F16);   // rows of 24
  EXPECT_EQ(m.file.find_tensor("blk.0.ffn_gate_inp.weight")->type, DType::F32);
  EXPECT_EQ(m.file.get_uint("general.quantization_version", 0, 9), 2u);
  EXPECT_EQ(m.file.get_uint("general.file_type", 0, 99), 7u);
  EXPECT_TRUE(std::any_of(m.warnings.begin(), m.warnings.end(), [](const std::string& line) {
    return line.find("4 tensors are written as F16") != std::string::npos;
  }));
}

}  // namespace
}  // namespace strata::gguf::hf
