// Writes GGUF files of random weights for tests: plain attention models of any size, and a small hybrid with an MTP
// block.
#pragma once

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "base/random.h"
#include "gguf/gguf.h"
#include "gguf/quant.h"

namespace strata::test {

// Gives the values of a tensor by its name; the default is uniform, scaled by 1/sqrt(ne[0]).
using TensorValues = std::function<bool(const std::string& name, std::vector<float>& values)>;

class RandomModel {
 public:
  struct Shape {
    int layers = 2, hidden = 64, inner = 128, heads = 4, kv_heads = 2, head_dim = 32, vocabulary = 256;
    DType type = DType::F32;
    uint64_t seed = 1;
  };

  explicit RandomModel(Shape shape) : shape_(shape) {}

  void write_qwen3(const std::string& path, const TensorValues& values = {}) {
    begin("qwen3", shape_.layers);
    for (int i = 0; i < shape_.layers; ++i) attention_layer(i, "ffn_norm", 1);
    finish(path, values);
  }

  // Gated attention in every layer and one MTP block at the end: the parts of qwen35 that have no delta net.
  void write_qwen35_mtp(const std::string& path, const TensorValues& values) {
    begin("qwen35", shape_.layers + 1);
    key("nextn_predict_layers", 1);
    key("full_attention_interval", 1);
    key("ssm.conv_kernel", 4), key("ssm.state_size", 16), key("ssm.group_count", 1);
    key("ssm.time_step_rank", 1), key("ssm.inner_size", 16);
    for (int i = 0; i <= shape_.layers; ++i) attention_layer(i, "post_attention_norm", 2);
    const std::string mtp = "blk." + std::to_string(shape_.layers) + ".nextn.";
    tensor(mtp + "eh_proj.weight", {2 * shape_.hidden, shape_.hidden});
    for (const char* name : {"enorm", "hnorm", "shared_head_norm"}) norm(mtp + name + ".weight", shape_.hidden);
    finish(path, values);
  }

 private:
  struct Described {
    std::string name;
    DType type;
    std::vector<uint64_t> ne;
    bool is_norm;
  };

  void key(const std::string& suffix, uint32_t value) {
    metadata_.emplace_back(arch_ + "." + suffix, gguf::Value::of_u32(value));
  }
  void tensor(const std::string& name, std::vector<int> ne) {
    tensors_.push_back({name, shape_.type, {ne.begin(), ne.end()}, false});
  }
  void norm(const std::string& name, int size) {
    tensors_.push_back({name, DType::F32, {static_cast<uint64_t>(size)}, true});
  }

  void begin(const std::string& arch, int blocks) {
    arch_ = arch;
    metadata_.clear(), tensors_.clear();
    metadata_.emplace_back("general.architecture", gguf::Value::of_string(arch));
    key("block_count", static_cast<uint32_t>(blocks)), key("context_length", 4096);
    key("embedding_length", static_cast<uint32_t>(shape_.hidden));
    key("feed_forward_length", static_cast<uint32_t>(shape_.inner));
    key("attention.head_count", static_cast<uint32_t>(shape_.heads));
    key("attention.head_count_kv", static_cast<uint32_t>(shape_.kv_heads));
    key("attention.key_length", static_cast<uint32_t>(shape_.head_dim));
    key("attention.value_length", static_cast<uint32_t>(shape_.head_dim));
    metadata_.emplace_back(arch + ".attention.layer_norm_rms_epsilon", gguf::Value::of_f32(1e-6f));
    tensor("token_embd.weight", {shape_.hidden, shape_.vocabulary});
    tensor("output.weight", {shape_.hidden, shape_.vocabulary});
    norm("output_norm.weight", shape_.hidden);
  }

  void attention_layer(int index, const std::string& mlp_norm, int q_parts) {
    const std::string block = "blk." + std::to_string(index) + ".";
    const int q = shape_.heads * shape_.head_dim, kv = shape_.kv_heads * shape_.head_dim;
    norm(block + "attn_norm.weight", shape_.hidden);
    norm(block + mlp_norm + ".weight", shape_.hidden);
    norm(block + "attn_q_norm.weight", shape_.head_dim), norm(block + "attn_k_norm.weight", shape_.head_dim);
    tensor(block + "attn_q.weight", {shape_.hidden, q_parts * q});
    tensor(block + "attn_k.weight", {shape_.hidden, kv}), tensor(block + "attn_v.weight", {shape_.hidden, kv});
    tensor(block + "attn_output.weight", {q, shape_.hidden});
    tensor(block + "ffn_gate.weight", {shape_.hidden, shape_.inner});
    tensor(block + "ffn_up.weight", {shape_.hidden, shape_.inner});
    tensor(block + "ffn_down.weight", {shape_.inner, shape_.hidden});
  }

  // Row by row: a file of many gigabytes needs no more memory than one row.
  void finish(const std::string& path, const TensorValues& values) {
    gguf::Writer writer(path);
    for (auto& [name, value] : metadata_) writer.add(name, value);
    for (const Described& one : tensors_) writer.add_tensor(one.name, one.type, one.ne);
    writer.begin_data();
    Random random(shape_.seed);
    for (const Described& one : tensors_) {
      const auto in = static_cast<int64_t>(one.ne[0]), rows = one.ne.size() > 1 ? static_cast<int64_t>(one.ne[1]) : 1;
      std::vector<float> all;
      const bool given = values && (all.resize(static_cast<size_t>(in * rows)), values(one.name, all));
      std::vector<float> row(static_cast<size_t>(in));
      std::vector<char> encoded(bytes_of(one.type, in));
      for (int64_t r = 0; r < rows; ++r) {
        // A block of rows repeats: random enough for tests of size, and fast to write.
        if (r < 64)
          for (float& x : row)
            x = one.is_norm ? 1.0f + random.uniform(-0.1f, 0.1f)
                            : random.uniform(-1.7f, 1.7f) / std::sqrt(static_cast<float>(in));
        const float* source = given ? all.data() + r * in : row.data();
        if (given || r < 64) gguf::encoder(one.type)(source, encoded.data(), in);
        writer.write(encoded.data(), encoded.size());
      }
    }
    writer.commit();
  }

  Shape shape_;
  std::string arch_;
  std::vector<std::pair<std::string, gguf::Value>> metadata_;
  std::vector<Described> tensors_;
};

}  // namespace strata::test
