// Complete tiny checkpoints of the families, tensor by tensor, for the conversion tests.
#pragma once

#include <string>

#include "unit/gguf/hf_test_util.h"

namespace strata::gguf::hf::testing {

// hidden 8, 2 layers, 2 heads of 4 on 1 kv head, vocabulary 10, 2 experts of 4; delta net 2 key heads of 2, 4 value
// heads of 3.
inline const std::string kTinyBase =
    R"("vocab_size":10,"hidden_size":8,"num_hidden_layers":2,"num_attention_heads":2,"num_key_value_heads":1,)"
    R"("head_dim":4,"intermediate_size":6,"max_position_embeddings":64,"partial_rotary_factor":1.0,)";
inline const std::string kTinyExperts =
    R"("num_experts":2,"num_experts_per_tok":1,"moe_intermediate_size":4,"shared_expert_intermediate_size":5,)";
inline const std::string kTinyDelta =
    R"("linear_key_head_dim":2,"linear_value_head_dim":3,"linear_num_key_heads":2,"linear_num_value_heads":4,)"
    R"("full_attention_interval":2,)";
inline const std::string kTinyQwen4 =
    R"("hc_count":2,"hc_lowrank":3,"output_gate_type":"sigmoid","indexer_n_heads":2,"indexer_head_dim":4,)"
    R"("indexer_budget":8,"indexer_compress_ratio":2,)";

inline std::string tiny_config(const std::string& type, const std::string& more) {
  return "{" + kTinyBase + more + "\"model_type\":\"" + type + "\"}";
}

inline void add_attention(TinyCheckpoint& t, const std::string& layer, bool gated, bool norms) {
  const std::string p = layer + "self_attn.";
  t.fill(p + "q_proj.weight", {gated ? 16u : 8u, 8});
  t.fill(p + "k_proj.weight", {4, 8});
  t.fill(p + "v_proj.weight", {4, 8});
  t.fill(p + "o_proj.weight", {8, 8});
  if (!norms) return;
  t.fill(p + "q_norm.weight", {4});
  t.fill(p + "k_norm.weight", {4});
}

inline void add_dense_mlp(TinyCheckpoint& t, const std::string& layer) {
  t.fill(layer + "mlp.gate_proj.weight", {6, 8});
  t.fill(layer + "mlp.up_proj.weight", {6, 8});
  t.fill(layer + "mlp.down_proj.weight", {8, 6});
}

inline void add_experts(TinyCheckpoint& t, const std::string& layer, bool shared) {
  t.fill(layer + "mlp.gate.weight", {2, 8});
  for (const std::string e : {"0", "1"}) {
    t.fill(layer + "mlp.experts." + e + ".gate_proj.weight", {4, 8});
    t.fill(layer + "mlp.experts." + e + ".up_proj.weight", {4, 8});
    t.fill(layer + "mlp.experts." + e + ".down_proj.weight", {8, 4});
  }
  if (!shared) return;
  t.fill(layer + "mlp.shared_expert_gate.weight", {1, 8});
  t.fill(layer + "mlp.shared_expert.gate_proj.weight", {5, 8});
  t.fill(layer + "mlp.shared_expert.up_proj.weight", {5, 8});
  t.fill(layer + "mlp.shared_expert.down_proj.weight", {8, 5});
}

inline void add_layer_norms(TinyCheckpoint& t, const std::string& layer) {
  t.fill(layer + "input_layernorm.weight", {8});
  t.fill(layer + "post_attention_layernorm.weight", {8});
}

inline void add_delta_net(TinyCheckpoint& t, const std::string& layer, bool grouped) {
  const std::string p = layer + "linear_attn.";
  if (grouped) {
    t.fill(p + "in_proj_qkvz.weight", {32, 8});
    t.fill(p + "in_proj_ba.weight", {8, 8});
  } else {
    t.fill(p + "in_proj_qkv.weight", {20, 8});
    t.fill(p + "in_proj_z.weight", {12, 8});
    t.fill(p + "in_proj_b.weight", {4, 8});
    t.fill(p + "in_proj_a.weight", {4, 8});
  }
  t.fill(p + "conv1d.weight", {20, 1, 4});
  t.fill(p + "dt_bias", {4});
  t.fill(p + "A_log", {4});
  t.fill(p + "norm.weight", {3});
  t.fill(p + "out_proj.weight", {8, 12});
}

inline void add_hyper_connection(TinyCheckpoint& t, const std::string& p, bool inject) {
  t.fill(p + "hc_norm.weight", {16});
  t.fill(p + "input_mix_weight_down.weight", {3, 16});
  t.fill(p + "input_mix_weight_up.weight", {16, 3});
  if (inject) t.fill(p + "block_inject_weight.weight", {2, 16});
}

inline void add_qwen4_attention(TinyCheckpoint& t, const std::string& layer) {
  add_attention(t, layer, true, true);
  t.fill(layer + "self_attn.indexer.index_qk_proj.weight", {12, 8});
  t.fill(layer + "self_attn.indexer.q_layernorm.weight", {4});
  t.fill(layer + "self_attn.indexer.k_layernorm.weight", {4});
}

inline TinyCheckpoint tiny_llama() {
  TinyCheckpoint t;
  t.fill("model.embed_tokens.weight", {10, 8});
  t.fill("model.norm.weight", {8});
  t.fill("lm_head.weight", {10, 8});
  for (const std::string layer : {"model.layers.0.", "model.layers.1."}) {
    add_layer_norms(t, layer);
    add_attention(t, layer, false, false);
    add_dense_mlp(t, layer);
  }
  return t;
}

inline TinyCheckpoint tiny_qwen3_next(bool mtp) {
  TinyCheckpoint t;
  t.fill("model.embed_tokens.weight", {10, 8});
  t.fill("model.norm.weight", {8});
  t.fill("lm_head.weight", {10, 8});
  for (const std::string layer : {"model.layers.0.", "model.layers.1.", "mtp.layers.0."}) {
    if (layer[1] == 't' && !mtp) continue;
    add_layer_norms(t, layer);
    if (layer == "model.layers.0.")
      add_delta_net(t, layer, true);
    else
      add_attention(t, layer, true, true);
    add_experts(t, layer, true);
  }
  if (!mtp) return t;
  t.fill("mtp.fc.weight", {8, 16});
  t.fill("mtp.pre_fc_norm_embedding.weight", {8});
  t.fill("mtp.pre_fc_norm_hidden.weight", {8});
  t.fill("mtp.norm.weight", {8});
  return t;
}

inline TinyCheckpoint tiny_qwen4_exp(bool mtp) {
  TinyCheckpoint t;
  t.fill("model.embed_tokens.weight", {10, 8});
  t.fill("lm_head.weight", {10, 8});
  add_hyper_connection(t, "model.hyper_connection_mixer.", false);
  for (const std::string layer : {"model.layers.0.", "model.layers.1.", "model.mtp.layers.0."}) {
    if (layer[7] == 't' && !mtp) continue;
    add_hyper_connection(t, layer + "attn_hyper_connection.", true);
    add_hyper_connection(t, layer + "mlp_hyper_connection.", true);
    if (layer == "model.layers.0.")
      add_delta_net(t, layer, false);
    else
      add_qwen4_attention(t, layer);
    add_experts(t, layer, true);
  }
  if (!mtp) return t;
  t.fill("model.mtp.fc_embedding.weight", {8, 8});
  t.fill("model.mtp.fc_hidden.weight", {8, 8});
  t.fill("model.mtp.pre_fc_norm_embedding.weight", {8});
  t.fill("model.mtp.pre_fc_norm_hidden.weight", {16});
  add_hyper_connection(t, "model.mtp.hyper_connection_mixer.", false);
  return t;
}

}  // namespace strata::gguf::hf::testing
