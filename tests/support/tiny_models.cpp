#include "support/tiny_models.h"

#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "base/random.h"
#include "gguf/quant.h"
#include "model/ngram_constants.h"

namespace strata::test {
namespace {

using gguf::Value;
using gguf::ValueType;

constexpr uint64_t kHeads = 2, kExperts = 4, kKeyHeads = 2, kValueHeads = 4, kKeyDim = 8, kStreams = 2, kTaps = 4;

std::string utf8_of(unsigned code) {
  if (code < 0x80) return {static_cast<char>(code)};
  return {static_cast<char>(0xC0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3F))};
}

// Builds one image; the methods follow the parts of a model.
class Builder {
 public:
  Builder(const std::string& arch, const TinyShape& shape)
      : arch_(arch), shape_(shape), width_(static_cast<uint64_t>(shape.width)), hyper_(arch == "qwen4exp") {
    trunk_ = static_cast<uint64_t>(shape.layers);
    blocks_ = trunk_ + (is_hybrid(arch) && shape.mtp ? 1 : 0);
  }

  ModelImage build() {
    metadata();
    tokenizer();
    matrix("token_embd.weight", {width_, tiny_tokens().size()});
    if (!shape_.tied) matrix("output.weight", {width_, tiny_tokens().size()});
    if (hyper_)
      hyper("output_hc_", false);
    else
      norm("output_norm.weight", width_);
    if (arch_ == "llama") plain("rope_freqs.weight", {width_ / kHeads / 2}, 1, 4);
    if (hyper_) matrix("per_layer_token_embd.weight", {width_, ngram_rows_});
    for (uint64_t i = 0; i < blocks_; ++i) block(i);
    return std::move(image_);
  }

 private:
  void u32(const std::string& key, uint64_t v) {
    image_.set(arch_ + "." + key, Value::of_u32(static_cast<uint32_t>(v)));
  }
  void f32(const std::string& key, double v) { image_.set(arch_ + "." + key, real_value(v)); }

  void metadata() {
    image_.set("general.architecture", Value::of_string(arch_));
    image_.set("general.name", Value::of_string("tiny " + arch_));
    image_.set("general.file_type", Value::of_u32(7));
    u32("block_count", blocks_), u32("context_length", 64), u32("embedding_length", width_);
    u32("feed_forward_length", width_);
    u32("attention.head_count", kHeads), u32("attention.head_count_kv", 1);
    u32("attention.key_length", width_ / kHeads), u32("attention.value_length", width_ / kHeads);
    f32("attention.layer_norm_rms_epsilon", 1e-6);
    f32("attention.scale", 0.25);
    f32("rope.freq_base", 10000);
    u32("rope.dimension_count", is_hybrid(arch_) ? width_ / kHeads / 2 : width_ / kHeads);
    rope_scaling();
    if (arch_ == "llama") u32("vocab_size", tiny_tokens().size());
    if (has_experts(arch_)) {
      u32("expert_count", kExperts), u32("expert_used_count", 2), u32("expert_feed_forward_length", width_);
      f32("expert_weights_scale", 1.5);
      image_.set(arch_ + ".expert_weights_norm", Value::of_bool(true));
      if (arch_ != "qwen3moe") u32("expert_shared_feed_forward_length", width_);
    }
    if (is_hybrid(arch_)) hybrid_metadata();
    if (hyper_) hyper_metadata();
  }

  void rope_scaling() {
    const bool yarn = arch_ == "qwen3" || arch_ == "qwen4exp";
    if (!yarn && arch_ != "qwen3moe") return;
    image_.set(arch_ + ".rope.scaling.type", Value::of_string(yarn ? "yarn" : "linear"));
    f32("rope.scaling.factor", 2);
    if (!yarn) return;
    u32("rope.scaling.original_context_length", 32);
    f32("rope.scaling.yarn_beta_fast", 32), f32("rope.scaling.yarn_beta_slow", 1);
    f32("rope.scaling.yarn_ext_factor", 1), f32("rope.scaling.yarn_attn_factor", 1.0625);
    f32("rope.scaling.attn_factor", 1);
  }

  void hybrid_metadata() {
    u32("ssm.conv_kernel", kTaps), u32("ssm.state_size", kKeyDim), u32("ssm.group_count", kKeyHeads);
    u32("ssm.time_step_rank", kValueHeads), u32("ssm.inner_size", width_);
    if (blocks_ > trunk_) u32("nextn_predict_layers", 1);
    if (arch_ != "qwen3next") image_.set(arch_ + ".rope.dimension_sections", Value::of_i32s({2, 1, 1, 0}));
    if (arch_ != "qwen35") {
      u32("full_attention_interval", 2);
      return;
    }
    Value recurrent = Value::of_bools({});
    for (uint64_t i = 0; i < blocks_; ++i) recurrent.us.push_back(is_delta(i) ? 1 : 0);
    image_.set(arch_ + ".attention.recurrent_layers", recurrent);
  }

  void hyper_metadata() {
    u32("hyper_connection.count", kStreams), u32("hyper_connection.low_rank", width_);
    u32("attention.indexer.head_count", 2), u32("attention.indexer.key_length", width_ / kHeads);
    u32("attention.indexer.top_k", 8);
    Value ratios = Value::of_u32s({});
    for (uint64_t i = 0; i < blocks_; ++i) ratios.us.push_back(is_delta(i) || i >= trunk_ ? 0 : 4);
    image_.set(arch_ + ".attention.compress_ratios", ratios);
    const NgramParams params = ngram_params(2, 2, 262, 1, tiny_tokens().size(), 0, 11);
    ngram_rows_ = params.head_offsets.back() + params.head_sizes.back();
    image_.set(arch_ + ".ple.layers", Value::of_u32s({0}));
    u32("ple.ngram_size", 3), u32("ple.heads_per_ngram", 2), u32("ple.conv_kernel", kTaps),
        u32("ple.eos_token_id", 262);
    image_.set(arch_ + ".ple.layer_multipliers", Value::of_u64s(params.multipliers));
    image_.set(arch_ + ".ple.head_offsets", Value::of_u64s(params.head_offsets));
    image_.set(arch_ + ".ple.head_vocab_sizes", Value::of_u64s(params.head_sizes));
    u32("embedding_length_per_layer_input", width_);
  }

  void tokenizer() {
    const std::string prefix = "tokenizer.ggml.";
    const std::vector<std::string> tokens = tiny_tokens();
    Value types = Value::of_i32s(std::vector<int64_t>(tokens.size(), 1));
    for (size_t id = 260; id < 263; ++id) types.is[id] = 3;
    types.is[263] = 4;
    const bool llama = arch_ == "llama", long_pre = is_hybrid(arch_) && arch_ != "qwen3next";
    image_.set(prefix + "model", Value::of_string("gpt2"));
    image_.set(prefix + "pre", Value::of_string(llama ? "llama-bpe" : long_pre ? "qwen35" : "qwen2"));
    image_.set(prefix + "tokens", Value::of_strings(tokens));
    image_.set(prefix + "token_type", types);
    image_.set(prefix + "merges", Value::of_strings({"h e", "l l", "he ll", "hell o"}));
    image_.set(prefix + "bos_token_id", Value::of_u32(260));
    image_.set(prefix + "eos_token_id", Value::of_u32(262));
    image_.set(prefix + "padding_token_id", Value::of_u32(260));
    image_.set(prefix + "add_bos_token", Value::of_bool(llama));
    image_.set(
        "tokenizer.chat_template",
        Value::of_string("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"));
  }

  bool is_delta(uint64_t block) const { return is_hybrid(arch_) && block < trunk_ && block % 2 == 0; }

  void add(const std::string& name, DType type, std::vector<uint64_t> ne, const std::vector<float>& values) {
    image_.tensors.push_back(
        {name, static_cast<uint32_t>(type), ne, encoded(type, values, ne[0], hash64(name.data(), name.size()))});
  }
  // Uniform within low .. high.
  void plain(const std::string& name, std::vector<uint64_t> ne, float low, float high, DType type = DType::F32) {
    uint64_t elements = 1;
    for (const uint64_t extent : ne) elements *= extent;
    Random random(hash64(name.data(), name.size()));
    std::vector<float> values(elements);
    for (float& v : values) v = random.uniform(low, high);
    add(name, type, std::move(ne), values);
  }
  // Scaled so that a product with a normed vector is of order one.
  void matrix(const std::string& name, std::vector<uint64_t> ne) {
    const float range = 1.7f / std::sqrt(static_cast<float>(ne[0]));
    plain(name, std::move(ne), -range, range, shape_.type);
  }
  void float_matrix(const std::string& name, std::vector<uint64_t> ne) {
    const float range = 1.7f / std::sqrt(static_cast<float>(ne[0]));
    plain(name, std::move(ne), -range, range);
  }
  // Around one, in steps that every float type of two bytes holds exactly.
  void norm(const std::string& name, uint64_t size) {
    Random random(hash64(name.data(), name.size()));
    std::vector<float> values(size);
    for (float& v : values) v = 1 + static_cast<float>(random.below(33) - 16) / 128;
    add(name, shape_.norms, {size}, values);
  }

  void block(uint64_t index) {
    const std::string b = "blk." + std::to_string(index) + ".";
    if (hyper_) {
      hyper(b + "hc_attn_", true), hyper(b + "hc_ffn_", true);
    } else {
      norm(b + "attn_norm.weight", width_);
      norm(b + (is_hybrid(arch_) ? "post_attention_norm.weight" : "ffn_norm.weight"), width_);
    }
    if (is_delta(index))
      delta_net(b);
    else
      attention(b, index < trunk_);
    if (has_experts(arch_) && (index > 0 || shape_.experts_everywhere))
      experts(b);
    else
      mlp(b, "", arch_ == "llama");
    if (hyper_ && index == 0) ngram(b);
    if (index >= trunk_) mtp(b + "nextn.");
  }

  void attention(const std::string& b, bool indexed) {
    const uint64_t dim = width_ / kHeads;
    matrix(b + "attn_q.weight", {width_, kHeads * dim * (is_hybrid(arch_) ? 2 : 1)});
    matrix(b + "attn_k.weight", {width_, dim}), matrix(b + "attn_v.weight", {width_, dim});
    matrix(b + "attn_output.weight", {kHeads * dim, width_});
    if (arch_ == "llama") {
      plain(b + "attn_q.bias", {kHeads * dim}, -1, 1), plain(b + "attn_k.bias", {dim}, -1, 1);
      plain(b + "attn_v.bias", {dim}, -1, 1), plain(b + "attn_output.bias", {width_}, -1, 1);
    } else {
      norm(b + "attn_q_norm.weight", dim), norm(b + "attn_k_norm.weight", dim);
    }
    if (!hyper_ || !indexed) return;
    matrix(b + "indexer.q_proj.weight", {width_, 2 * dim}), matrix(b + "indexer.k_proj.weight", {width_, dim});
    norm(b + "indexer.q_norm.weight", dim), norm(b + "indexer.k_norm.weight", dim);
  }

  void delta_net(const std::string& b) {
    const uint64_t channels = 2 * kKeyHeads * kKeyDim + width_;
    matrix(b + "attn_qkv.weight", {width_, channels}), matrix(b + "attn_gate.weight", {width_, width_});
    if (arch_ == "qwen3next") {
      matrix(b + "ssm_ba.weight", {width_, 2 * kValueHeads});
    } else {
      matrix(b + "ssm_beta.weight", {width_, kValueHeads}), matrix(b + "ssm_alpha.weight", {width_, kValueHeads});
    }
    float_matrix(b + "ssm_conv1d.weight", {kTaps, channels});
    plain(b + "ssm_dt.bias", {kValueHeads}, -1, 1), plain(b + "ssm_a", {kValueHeads}, -2, -0.2f);
    norm(b + "ssm_norm.weight", width_ / kValueHeads);
    matrix(b + "ssm_out.weight", {width_, width_});
  }

  void mlp(const std::string& b, const std::string& suffix, bool biases) {
    for (const char* part : {"ffn_gate", "ffn_up", "ffn_down"}) {
      matrix(b + part + suffix + ".weight", {width_, width_});
      if (biases) plain(b + part + suffix + ".bias", {width_}, -1, 1);
    }
  }

  void experts(const std::string& b) {
    float_matrix(b + "ffn_gate_inp.weight", {width_, kExperts});
    for (const char* part : {"ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"})
      matrix(b + part + ".weight", {width_, width_, kExperts});
    if (arch_ == "qwen3moe") return;
    float_matrix(b + "ffn_gate_inp_shexp.weight", {width_});
    mlp(b, "_shexp", false);
  }

  void hyper(const std::string& prefix, bool writes) {
    const uint64_t wide = kStreams * width_;
    norm(prefix + "norm.weight", wide);
    matrix(prefix + "down.weight", {wide, width_}), matrix(prefix + "up.weight", {width_, wide});
    if (writes) matrix(prefix + "inject.weight", {wide, kStreams});
  }

  void ngram(const std::string& b) {
    const uint64_t in = 4 * width_, wide = kStreams * width_;
    matrix(b + "ple_key.weight", {in, wide}), matrix(b + "ple_value.weight", {in, width_});
    for (const char* part : {"ple_norm_key", "ple_norm_query", "ple_norm_conv"}) norm(b + part + ".weight", wide);
    float_matrix(b + "ple_conv1d.weight", {kTaps, wide});
  }

  void mtp(const std::string& b) {
    matrix(b + "eh_proj.weight", {2 * width_, width_});
    norm(b + "enorm.weight", width_), norm(b + "hnorm.weight", hyper_ ? kStreams * width_ : width_);
    if (hyper_)
      hyper(b + "hc_head_", false);
    else
      norm(b + "shared_head_norm.weight", width_);
    if (!shape_.own_mtp_ends) return;
    matrix(b + "embed_tokens.weight", {width_, tiny_tokens().size()});
    matrix(b + "shared_head_head.weight", {width_, tiny_tokens().size()});
  }

  std::string arch_;
  TinyShape shape_;
  uint64_t width_, trunk_ = 0, blocks_ = 0, ngram_rows_ = 0;
  bool hyper_;
  ModelImage image_;
};

// Bytes that decode to values of at most 8: drawn again until they do.
std::string random_block(DType type, Random& random) {
  const DTypeInfo& t = info(type);
  std::string block(t.block_bytes, '\0');
  std::vector<float> values(t.block_elements);
  for (;;) {
    for (char& byte : block) byte = static_cast<char>(random.next() >> 32);
    gguf::decoder(type)(block.data(), values.data(), t.block_elements);
    bool small = true;
    for (const float v : values) small = small && std::fabs(v) <= 8;
    if (small) return block;
  }
}

// Integers from -3 to 3, or the values themselves as F64.
std::string small_numbers(DType type, const std::vector<float>& values) {
  std::string data;
  float largest = 0;
  for (const float v : values) largest = std::max(largest, std::fabs(v));
  for (const float v : values) {
    const int64_t whole = std::lround(3 * v / largest);
    if (type == DType::F64) {
      const double real = static_cast<double>(v);
      data.append(reinterpret_cast<const char*>(&real), sizeof real);
    } else {
      data.append(reinterpret_cast<const char*>(&whole), info(type).block_bytes);  // little-endian: the low bytes
    }
  }
  return data;
}

}  // namespace

bool is_hybrid(const std::string& arch) {
  return arch == "qwen3next" || arch == "qwen4exp" || arch.starts_with("qwen35");
}
bool has_experts(const std::string& arch) { return arch != "llama" && arch != "qwen3" && arch != "qwen35"; }

std::vector<std::string> tiny_tokens() {
  std::vector<std::string> tokens;
  unsigned moved = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool kept = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    tokens.push_back(utf8_of(kept ? byte : moved++));
  }
  for (const char* text : {"he", "ll", "hell", "hello", "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>"})
    tokens.emplace_back(text);
  return tokens;
}

std::string encoded(DType type, const std::vector<float>& values, uint64_t row, uint64_t seed) {
  const DTypeInfo& t = info(type);
  if (!t.quantised && !gguf::has_encoder(type)) return small_numbers(type, values);
  std::string data;
  if (gguf::has_encoder(type)) {
    data.resize(bytes_of(type, static_cast<int64_t>(row)) * (values.size() / row));
    const size_t row_bytes = data.size() / (values.size() / row);
    for (size_t r = 0; r < values.size() / row; ++r)
      gguf::encoder(type)(values.data() + r * row, data.data() + r * row_bytes, static_cast<int64_t>(row));
    return data;
  }
  Random random(seed);
  std::vector<std::string> blocks;  // a few dozen serve a whole tensor
  for (int i = 0; i < 64; ++i) blocks.push_back(random_block(type, random));
  for (size_t i = 0; i < values.size() / t.block_elements; ++i) data += blocks[random.next() % blocks.size()];
  return data;
}

ModelImage tiny_model(const std::string& arch, const TinyShape& shape) { return Builder(arch, shape).build(); }

}  // namespace strata::test
