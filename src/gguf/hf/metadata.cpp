#include "gguf/hf/metadata.h"

#include <algorithm>

#include "gguf/hf/storage.h"

namespace strata::gguf::hf {
namespace {

class Keys {
 public:
  explicit Keys(std::string_view arch) : arch_(arch) {}
  void general(const std::string& key, Value value) { list_.push_back({"general." + key, std::move(value)}); }
  void add(const std::string& key, Value value) { list_.push_back({arch_ + "." + key, std::move(value)}); }
  void u32(const std::string& key, uint64_t value) { add(key, Value::of_u32(static_cast<uint32_t>(value))); }
  void f32(const std::string& key, double value) { add(key, Value::of_f32(static_cast<float>(value))); }
  std::vector<KeyValue> take() { return std::move(list_); }

 private:
  std::string arch_;
  std::vector<KeyValue> list_;
};

void add_general(Keys& k, const Config& c, const std::string& name, DType type) {
  k.general("architecture", Value::of_string(std::string(architecture(c.family))));
  k.general("type", Value::of_string("model"));
  k.general("name", Value::of_string(name));
  k.general("file_type", Value::of_u32(file_type(type)));
  if (info(type).quantised) k.general("quantization_version", Value::of_u32(2));
}

void add_base(Keys& k, const Config& c, const Plan& plan) {
  k.u32("block_count", c.layers + plan.mtp_blocks);
  k.u32("context_length", c.context);
  k.u32("embedding_length", c.hidden);
  if (c.intermediate > 0) k.u32("feed_forward_length", c.intermediate);
  if (c.family == Family::Llama) k.u32("vocab_size", c.vocab);
  k.u32("attention.head_count", c.heads);
  k.u32("attention.head_count_kv", c.kv_heads);
  k.u32("attention.key_length", c.head_dim);
  k.u32("attention.value_length", c.head_dim);
  k.f32("attention.layer_norm_rms_epsilon", c.norm_epsilon);
  if (plan.mtp_blocks > 0) k.u32("nextn_predict_layers", plan.mtp_blocks);
}

void add_rope(Keys& k, const Config& c, const Warn& warn) {
  const RopeConfig& r = c.rope;
  k.f32("rope.freq_base", r.theta);
  k.u32("rope.dimension_count", r.dimensions);
  if (is_hybrid(c.family) && c.family != Family::Qwen3Next)
    k.add("rope.dimension_sections", Value::of_i32s({r.sections.begin(), r.sections.end()}));
  if (r.scaling == RopeScaling::Linear) {
    k.add("rope.scaling.type", Value::of_string("linear"));
    k.f32("rope.scaling.factor", r.factor);
  }
  if (r.scaling != RopeScaling::Yarn) return;
  k.add("rope.scaling.type", Value::of_string("yarn"));
  k.f32("rope.scaling.factor", r.factor);
  k.u32("rope.scaling.original_context_length", r.original_context);
  if (r.extrapolation) k.f32("rope.scaling.yarn_ext_factor", *r.extrapolation);
  if (r.beta_fast) k.f32("rope.scaling.yarn_beta_fast", *r.beta_fast);
  if (r.beta_slow) k.f32("rope.scaling.yarn_beta_slow", *r.beta_slow);
  if (!r.attention_factor) return;
  k.f32("rope.scaling.yarn_attn_factor", *r.attention_factor);
  warn("rope attention_factor is written as yarn_attn_factor; llama.cpp computes its own and ignores it");
}

void add_experts(Keys& k, const Config& c, const Warn& warn) {
  const ExpertConfig& e = c.experts;
  if (e.count == 0) return;
  k.u32("expert_count", e.count);
  k.u32("expert_used_count", e.used);
  k.u32("expert_feed_forward_length", e.hidden);
  if (e.shared_hidden > 0) k.u32("expert_shared_feed_forward_length", e.shared_hidden);
  if (!e.normalise) {
    k.add("expert_weights_norm", Value::of_bool(false));
    warn("norm_topk_prob is false: written as expert_weights_norm; other readers may normalise expert weights anyway");
  }
  if (const auto dense = std::count(c.dense.begin(), c.dense.end(), true); dense > 0)
    warn(std::to_string(dense) + " dense layers inside a mixture of experts: other readers may refuse the file");
}

// The interval n for which layer i is full attention exactly when (i + 1) mod n = 0; 0 when there is none.
uint64_t regular_interval(const std::vector<bool>& recurrent) {
  const auto first = std::find(recurrent.begin(), recurrent.end(), false);
  const uint64_t interval = static_cast<uint64_t>(first - recurrent.begin()) + 1;
  for (uint64_t i = 0; i < recurrent.size(); ++i)
    if (recurrent[i] != ((i + 1) % interval != 0)) return 0;
  return interval;
}

void add_hybrid(Keys& k, const Config& c, const Plan& plan, const Warn& warn) {
  const DeltaNetConfig& d = c.delta;
  k.u32("ssm.conv_kernel", d.conv_kernel);
  k.u32("ssm.state_size", d.key_dim);
  k.u32("ssm.group_count", d.key_heads);
  k.u32("ssm.time_step_rank", d.value_heads);
  k.u32("ssm.inner_size", d.value_size());
  if (d.key_dim != d.value_dim)
    warn("delta-net heads have key dimension " + std::to_string(d.key_dim) + " and value dimension " +
         std::to_string(d.value_dim) + ": readers that know one state size will refuse or misread the file");
  std::vector<uint64_t> recurrent(c.recurrent.begin(), c.recurrent.end());
  recurrent.resize(c.layers + plan.mtp_blocks, 0);
  k.add("attention.recurrent_layers", Value::of_bools(recurrent));
  if (const uint64_t interval = regular_interval(c.recurrent); interval > 0)
    k.u32("full_attention_interval", interval);
  else
    warn("the layer pattern is irregular: readers that ignore attention.recurrent_layers will misread the file");
}

void add_ple(Keys& k, const Config& c, const PleConstants& constants, const Warn& warn) {
  const PleConfig& p = c.ple;
  if (p.layers.empty()) return;
  k.add("ple.layers", Value::of_u32s(p.layers));
  k.u32("ple.ngram_size", p.ngram_size);
  k.u32("ple.heads_per_ngram", p.heads_per_ngram);
  k.u32("ple.conv_kernel", p.conv_kernel);
  k.u32("ple.eos_token_id", c.eos.front());
  if (c.image_token) k.u32("ple.image_token_id", *c.image_token);
  k.add("ple.layer_multipliers", Value::of_u64s(constants.layer_multipliers));
  k.add("ple.head_offsets", Value::of_u64s(constants.head_offsets));
  k.add("ple.head_vocab_sizes", Value::of_u64s(constants.head_vocab_sizes));
  k.u32("embedding_length_per_layer_input", constants.row_width);
  if (p.layers.size() > 1)
    warn(std::to_string(p.layers.size()) + " n-gram modules share one table: other readers expect exactly one module");
  if (c.eos.size() > 1)
    warn("ple.eos_token_id is " + std::to_string(c.eos.front()) + ", the first of " + std::to_string(c.eos.size()) +
         " end tokens; llama.cpp's converter writes the last");
}

void add_qwen4exp(Keys& k, const Config& c, const Plan& plan, const Warn& warn) {
  k.u32("hyper_connection.count", c.streams);
  k.u32("hyper_connection.low_rank", c.stream_rank);
  std::vector<uint64_t> ratios(c.layers + plan.mtp_blocks, 0);
  if (c.indexer.heads > 0) {
    k.u32("attention.indexer.head_count", c.indexer.heads);
    k.u32("attention.indexer.key_length", c.indexer.head_dim);
    k.u32("attention.indexer.top_k", c.indexer.budget);
    for (uint64_t i = 0; i < c.layers; ++i) ratios[i] = c.recurrent[i] ? 0 : c.indexer.ratio;
  }
  k.add("attention.compress_ratios", Value::of_u32s(ratios));
  if (!c.sigmoid_output_gate) {
    k.add("ssm.output_gate", Value::of_string("silu"));
    warn("the delta net's output gate is silu: written as ssm.output_gate; other readers assume sigmoid");
  }
  add_ple(k, c, plan.ple, warn);
}

}  // namespace

std::vector<KeyValue> model_metadata(const Config& config, const Plan& plan, const std::string& name, DType type,
                                     const Warn& warn) {
  Keys keys(architecture(config.family));
  add_general(keys, config, name, type);
  add_base(keys, config, plan);
  add_rope(keys, config, warn);
  add_experts(keys, config, warn);
  if (is_hybrid(config.family)) add_hybrid(keys, config, plan, warn);
  if (config.family == Family::Qwen4Exp) add_qwen4exp(keys, config, plan, warn);
  return keys.take();
}

}  // namespace strata::gguf::hf
