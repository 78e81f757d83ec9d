#include "model/weights.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "model/binder.h"

namespace strata {
namespace {

Linear slice_rows(const Linear& fused, int64_t first, int64_t count) {
  Linear map;
  map.out = count;
  map.scale = fused.scale;
  map.parts.push_back(rows_of(fused.parts[0].weight, first, count, 0));
  if (!fused.bias.empty()) map.bias = fused.bias.slice(first, count);
  return map;
}

void bind_attention(Binder& bind, const ModelSpec& spec, const LayerSpec& layer, AttentionWeights& w) {
  const AttentionSpec& attention = layer.attention;
  const int64_t hidden = spec.hidden, dim = attention.head_dim;
  const int64_t q_out = attention.heads * dim * (attention.gated ? 2 : 1), kv_out = attention.kv_heads * dim;
  if (bind.has("attn_qkv.weight")) {
    const Linear fused = bind.linear("attn_qkv", q_out + 2 * kv_out, hidden);
    w.q = slice_rows(fused, 0, q_out);
    w.k = slice_rows(fused, q_out, kv_out);
    w.v = slice_rows(fused, q_out + kv_out, kv_out);
  } else {
    w.q = bind.linear("attn_q", q_out, hidden);
    w.k = bind.linear("attn_k", kv_out, hidden);
    w.v = bind.linear("attn_v", kv_out, hidden);
  }
  w.output = bind.linear("attn_output", hidden, attention.heads * dim);
  if (attention.qk_norm) {
    w.q_norm = bind.f32("attn_q_norm.weight", {dim});
    w.k_norm = bind.f32("attn_k_norm.weight", {dim});
  }
  if (layer.indexer.ratio == 0) return;
  const int64_t d = layer.indexer.dim;
  w.index_q = bind.linear("indexer.q_proj", layer.indexer.heads * d, hidden);
  w.index_k = bind.linear("indexer.k_proj", d, hidden);
  w.index_q_norm = bind.f32("indexer.q_norm.weight", {d});
  w.index_k_norm = bind.f32("indexer.k_norm.weight", {d});
}

// Legacy qwen3next layout: rows of one tensor grouped per key head as q, k, v, z.
void bind_fused_qkvz(Binder& bind, const ModelSpec& spec, DeltaWeights& w) {
  const DeltaSpec& delta = spec.delta;
  const int64_t dk = delta.dk, dv = delta.dv, keys = delta.key_heads * dk;
  const int64_t values = delta.value_heads / delta.key_heads * dv, group = 2 * dk + 2 * values;
  const Linear map = bind.linear("ssm_in", delta.key_heads * group, spec.hidden);
  const Tensor& fused = map.parts[0].weight;
  w.qkv.scale = w.z.scale = map.scale;
  w.qkv.out = delta.channels();
  w.z.out = delta.value_heads * dv;
  for (int64_t h = 0; h < delta.key_heads; ++h) {
    const int64_t row = h * group;
    w.qkv.parts.push_back(rows_of(fused, row, dk, h * dk));
    w.qkv.parts.push_back(rows_of(fused, row + dk, dk, keys + h * dk));
    w.qkv.parts.push_back(rows_of(fused, row + 2 * dk, values, 2 * keys + h * values));
    w.z.parts.push_back(rows_of(fused, row + 2 * dk + values, values, h * values));
  }
}

void bind_delta(Binder& bind, const ModelSpec& spec, DeltaWeights& w) {
  const DeltaSpec& delta = spec.delta;
  const int64_t hidden = spec.hidden, heads = delta.value_heads, inner = heads * delta.dv;
  if (bind.has("ssm_in.weight")) {
    bind_fused_qkvz(bind, spec, w);
  } else {
    w.qkv = bind.linear("attn_qkv", delta.channels(), hidden);
    w.z = bind.linear("attn_gate", inner, hidden);
  }
  if (bind.has("ssm_ba.weight")) {  // rows per key head: its b rows, then its a rows
    const Linear map = bind.linear("ssm_ba", 2 * heads, hidden);
    const Tensor& fused = map.parts[0].weight;
    const int64_t repeat = heads / delta.key_heads;
    w.beta.scale = w.alpha.scale = map.scale;
    w.beta.out = w.alpha.out = heads;
    for (int64_t h = 0; h < delta.key_heads; ++h) {
      w.beta.parts.push_back(rows_of(fused, 2 * h * repeat, repeat, h * repeat));
      w.alpha.parts.push_back(rows_of(fused, (2 * h + 1) * repeat, repeat, h * repeat));
    }
  } else {
    w.beta = bind.linear("ssm_beta", heads, hidden);
    w.alpha = bind.linear("ssm_alpha", heads, hidden);
  }
  w.conv = bind.f32("ssm_conv1d.weight", {delta.channels(), delta.conv_width});
  w.dt_bias = bind.f32("ssm_dt.bias", {heads});
  w.a = bind.f32("ssm_a", {heads});
  w.norm = bind.f32("ssm_norm.weight", {delta.dv});
  w.output = bind.linear("ssm_out", hidden, inner);
}

DenseWeights bind_dense(Binder& bind, int64_t hidden, int64_t inner, const std::string& suffix) {
  if (inner < 1) bind.fail("ffn_gate" + suffix + ".weight", "has no size: feed_forward_length is missing or 0");
  return {bind.linear("ffn_gate" + suffix, inner, hidden), bind.linear("ffn_up" + suffix, inner, hidden),
          bind.linear("ffn_down" + suffix, hidden, inner)};
}

void bind_experts(Binder& bind, const ModelSpec& spec, ExpertWeights& w) {
  const ExpertsSpec& experts = spec.experts;
  const int64_t hidden = spec.hidden, count = experts.count, inner = experts.inner;
  w.router = bind.linear("ffn_gate_inp", count, hidden);
  if (bind.has("ffn_gate_up_exps.weight")) {  // gate rows first
    const Tensor fused = bind.tensor("ffn_gate_up_exps.weight", {count, 2 * inner, hidden});
    w.gate = w.up = fused;
    w.gate.extents[1] = w.up.extents[1] = inner;
    w.up.data = static_cast<char*>(fused.data) + inner * fused.stride(1);
    w.gate_scale = w.up_scale = bind.f32_if("ffn_gate_up_exps.scale", {count});
  } else {
    w.gate = bind.tensor("ffn_gate_exps.weight", {count, inner, hidden});
    w.up = bind.tensor("ffn_up_exps.weight", {count, inner, hidden});
    w.gate_scale = bind.f32_if("ffn_gate_exps.scale", {count});
    w.up_scale = bind.f32_if("ffn_up_exps.scale", {count});
  }
  w.down = bind.tensor("ffn_down_exps.weight", {count, hidden, inner});
  w.down_scale = bind.f32_if("ffn_down_exps.scale", {count});
  if (experts.shared_inner == 0) return;
  w.shared = bind_dense(bind, hidden, experts.shared_inner, "_shexp");
  w.shared_gate = bind.linear("ffn_gate_inp_shexp", 1, hidden);
}

HyperWeights bind_hyper(Binder& bind, const ModelSpec& spec, const std::string& prefix, bool writes) {
  const int64_t width = spec.residual_width();
  HyperWeights w;
  w.norm = bind.f32(prefix + "norm.weight", {spec.streams, spec.hidden});
  w.down = bind.linear(prefix + "down", spec.low_rank, width);
  w.up = bind.linear(prefix + "up", width, spec.low_rank);
  if (writes) w.inject = bind.linear(prefix + "inject", spec.streams, width);
  return w;
}

void bind_ngram(Binder& bind, const ModelSpec& spec, const NgramSpec& ngram, NgramWeights& w) {
  const int64_t in = int64_t{ngram.params.orders} * ngram.params.heads * ngram.width, width = spec.residual_width();
  w.key = bind.linear("ple_key", width, in);
  w.value = bind.linear("ple_value", spec.hidden, in);
  w.norm_key = bind.f32("ple_norm_key.weight", {spec.streams, spec.hidden});
  w.norm_query = bind.f32("ple_norm_query.weight", {spec.streams, spec.hidden});
  w.norm_conv = bind.f32("ple_norm_conv.weight", {spec.streams, spec.hidden});
  w.conv = bind.f32("ple_conv1d.weight", {width, ngram.conv_width});
}

void bind_layer(Binder& bind, const ModelSpec& spec, const LayerSpec& layer, LayerWeights& w) {
  if (spec.hyper()) {
    w.attention_hyper = bind_hyper(bind, spec, "hc_attn_", true);
    w.mlp_hyper = bind_hyper(bind, spec, "hc_ffn_", true);
  } else {
    w.attention_norm = bind.f32("attn_norm.weight", {spec.hidden});
    const bool hybrid_name = bind.has("post_attention_norm.weight");
    w.mlp_norm = bind.f32(hybrid_name ? "post_attention_norm.weight" : "ffn_norm.weight", {spec.hidden});
  }
  if (layer.mixer == MixerKind::Attention)
    bind_attention(bind, spec, layer, w.attention);
  else
    bind_delta(bind, spec, w.delta);
  if (layer.mlp == MlpKind::Experts)
    bind_experts(bind, spec, w.experts);
  else
    w.dense = bind_dense(bind, spec.hidden, layer.inner, "");
  if (layer.ngram >= 0) bind_ngram(bind, spec, spec.ngrams[static_cast<size_t>(layer.ngram)], w.ngram);
}

void bind_mtp(Binder& bind, const ModelSpec& spec, const Weights& trunk, MtpWeights& w) {
  const int64_t hidden = spec.hidden;
  w.merge = bind.linear("nextn.eh_proj", hidden, 2 * hidden);
  w.embedding_norm = bind.f32("nextn.enorm.weight", {hidden});
  w.table = bind.has("nextn.embed_tokens.weight") ? bind.tensor("nextn.embed_tokens.weight", {spec.vocabulary, hidden})
                                                  : trunk.table;
  w.head = bind.has("nextn.shared_head_head.weight") ? bind.linear("nextn.shared_head_head", spec.vocabulary, hidden)
                                                     : trunk.head;
  if (spec.hyper()) {
    w.hidden_norm = bind.f32("nextn.hnorm.weight", {spec.streams, hidden});
    w.mixer = bind_hyper(bind, spec, "nextn.hc_head_", false);
  } else {
    w.hidden_norm = bind.f32("nextn.hnorm.weight", {hidden});
    w.head_norm = bind.has("nextn.shared_head_norm.weight") ? bind.f32("nextn.shared_head_norm.weight", {hidden})
                                                            : trunk.output_norm;
  }
}

void bind_rope_factors(Binder& bind, ModelSpec& spec) {
  if (!bind.has("rope_freqs.weight")) return;
  const int half = spec.rope.rotary_dims / 2;
  const Tensor factors = bind.f32("rope_freqs.weight", {half});
  spec.rope.pair_factors.assign(factors.f32(), factors.f32() + half);
  for (float factor : spec.rope.pair_factors)
    if (!(factor > 0) || !std::isfinite(factor))
      bind.fail("rope_freqs.weight", "has a factor that is not positive and finite");
}

// The hash of every module must stay inside the table.
Tensor bind_ngram_table(Binder& bind, const ModelSpec& spec) {
  constexpr const char* kName = "per_layer_token_embd.weight";
  uint64_t needed = 0;
  for (const NgramSpec& ngram : spec.ngrams)
    for (size_t head = 0; head < ngram.params.head_sizes.size(); ++head)  // each is below 2^63
      needed = std::max(needed, ngram.params.head_offsets[head] + ngram.params.head_sizes[head]);
  const gguf::TensorInfo* found = bind.file().find_tensor(kName);
  const uint64_t rows = found == nullptr ? 0 : found->ne[1];
  if (found != nullptr && rows < needed)
    bind.fail(kName, "has " + std::to_string(rows) + " rows, ple.head_offsets and ple.head_vocab_sizes need " +
                         std::to_string(needed));
  return bind.tensor(kName, {static_cast<int64_t>(rows), spec.ngrams[0].width});
}

}  // namespace

Weights bind_weights(const gguf::File& file, ModelSpec& spec) {
  Weights w;
  Binder bind(file, w.owned);
  const int64_t hidden = spec.hidden, vocabulary = spec.vocabulary;
  bind_rope_factors(bind, spec);
  const Linear table = bind.linear("token_embd", vocabulary, hidden);
  w.table = table.parts[0].weight;
  w.tied = !bind.has("output.weight");
  w.head = w.tied ? table : bind.linear("output", vocabulary, hidden);
  if (spec.hyper())
    w.output_mixer = bind_hyper(bind, spec, "output_hc_", false);
  else
    w.output_norm = bind.f32("output_norm.weight", {hidden});
  if (!spec.ngrams.empty()) w.ngram_table = bind_ngram_table(bind, spec);
  w.layers.resize(spec.layers.size());
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    bind.set_prefix("blk." + std::to_string(i) + ".");
    bind_layer(bind, spec, spec.layers[i], w.layers[i]);
  }
  w.mtp.resize(static_cast<size_t>(spec.mtp_layers));
  for (int k = 0; k < spec.mtp_layers; ++k) {
    bind.set_prefix("blk." + std::to_string(spec.trunk_layers() + k) + ".");
    bind_mtp(bind, spec, w, w.mtp[static_cast<size_t>(k)]);
  }
  return w;
}

}  // namespace strata
