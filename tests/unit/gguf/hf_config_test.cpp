#include "gguf/hf/config.h"
#include "unit/gguf/hf_test_util.h"

namespace strata::gguf::hf {
namespace {

using testing::expect_error;

const std::string kBase =
    R"("vocab_size":320,"hidden_size":64,"num_hidden_layers":4,"num_attention_heads":4,"num_key_value_heads":2,)"
    R"("head_dim":32,"intermediate_size":96,"max_position_embeddings":1024,"rms_norm_eps":1e-6,"hidden_act":"silu")";
const std::string kDelta =
    R"(,"linear_key_head_dim":16,"linear_value_head_dim":16,"linear_num_key_heads":2,"linear_num_value_heads":4)";
const std::string kExperts = R"(,"num_experts":8,"num_experts_per_tok":2,"moe_intermediate_size":16,)"
                             R"("shared_expert_intermediate_size":24)";

std::vector<std::string> warnings;

Config parse(const std::string& type, const std::string& more) {
  warnings.clear();
  return parse_config("{\"model_type\":\"" + type + "\"," + kBase + more + "}", "config.json",
                      [](const std::string& line) { warnings.push_back(line); });
}

void refused(const std::string& type, const std::string& more, const std::string& part) {
  expect_error(ErrorKind::Model, part, [&] { parse(type, more); });
}

TEST(HfConfig, FamiliesAndTheirNames) {
  const std::string all = kDelta + kExperts;
  const std::vector<std::pair<std::string, std::string>> cases{
      {"llama", "llama"},           {"qwen3", "qwen3"},
      {"qwen3_moe", "qwen3moe"},    {"qwen3_next", "qwen3next"},
      {"qwen3_5", "qwen35"},        {"qwen3_5_text", "qwen35"},
      {"qwen3_5_moe", "qwen35moe"}, {"qwen3_5_moe_text", "qwen35moe"},
      {"qwen4_exp", "qwen4exp"},    {"qwen4_exp_text", "qwen4exp"}};
  for (const auto& [type, arch] : cases) EXPECT_EQ(architecture(parse(type, type == "llama" ? "" : all).family), arch);
  refused("gemma3", "", "model_type \"gemma3\" is not supported; supported model types: llama");
  const auto by_class = [&](const std::string& name) {
    return parse_config("{\"architectures\":[\"" + name + "\"]," + kBase + all + "}", "config.json", {}).family;
  };
  EXPECT_EQ(by_class("Qwen3ForCausalLM"), Family::Qwen3);
  EXPECT_EQ(by_class("Qwen3_5MoeForConditionalGeneration"), Family::Qwen35Moe);
  expect_error(ErrorKind::Model, "\"FooForCausalLM\" is not supported", [&] { by_class("FooForCausalLM"); });
}

TEST(HfConfig, TextConfigWinsOverTheTopLevel) {
  const Config c = parse_config(R"({"model_type":"qwen3_5","tie_word_embeddings":true,"hidden_size":9999,)"
                                R"("image_token_id":7,"eos_token_id":5,"text_config":{"model_type":"qwen3_5_text",)"
                                R"("eos_token_id":null,)" +
                                    kBase + kDelta + "}}",
                                "config.json", {});
  EXPECT_EQ(c.hidden, 64u);
  EXPECT_EQ(c.tied, true);
  EXPECT_EQ(c.image_token, 7u);
  EXPECT_EQ(c.eos, std::vector<uint64_t>{5});  // null says nothing
}

TEST(HfConfig, RopeIsReadFromEitherPlace) {
  EXPECT_EQ(parse("qwen3", R"(,"rope_theta":5e5)").rope.theta, 5e5);
  EXPECT_EQ(parse("qwen3", R"(,"rope_theta":1,"rope_parameters":{"rope_theta":7e6})").rope.theta, 7e6);
  EXPECT_EQ(parse("qwen3_5", kDelta).rope.dimensions, 8u);  // a quarter of 32
  EXPECT_EQ(parse("qwen3_5", kDelta + R"(,"partial_rotary_factor":0.5)").rope.dimensions, 16u);
  const Config c = parse("qwen3_5", kDelta + R"(,"partial_rotary_factor":0.25,"rope_parameters":)"
                                             R"({"partial_rotary_factor":0.5,"mrope_section":[3,3,2]})");
  EXPECT_EQ(c.rope.dimensions, 16u);  // rope_parameters wins
  EXPECT_EQ(c.rope.sections, (std::array<int64_t, 4>{3, 3, 2, 0}));
  EXPECT_TRUE(warnings.empty());
  parse("qwen3_5", kDelta + R"(,"rope_parameters":{"partial_rotary_factor":0.5,"mrope_section":[4,2,2]})");
  ASSERT_EQ(warnings.size(), 1u);  // pair 7 takes axis 1, whose section reaches pair 5 only
  EXPECT_NE(warnings[0].find("pair 7"), std::string::npos);
}

TEST(HfConfig, RopeScaling) {
  const Config yarn = parse("qwen3", R"(,"rope_scaling":{"rope_type":"yarn","factor":4.0,"beta_fast":16,)"
                                     R"("original_max_position_embeddings":256,"attention_factor":1.25})");
  EXPECT_EQ(yarn.rope.scaling, RopeScaling::Yarn);
  EXPECT_EQ(yarn.rope.factor, 4.0);
  EXPECT_EQ(yarn.rope.original_context, 256u);
  EXPECT_EQ(yarn.rope.beta_fast, 16.0);
  EXPECT_FALSE(yarn.rope.beta_slow.has_value());
  EXPECT_EQ(yarn.rope.attention_factor, 1.25);
  EXPECT_EQ(parse("llama", R"(,"rope_scaling":{"type":"linear","factor":2})").rope.scaling, RopeScaling::Linear);
  refused("llama", R"(,"rope_scaling":{"type":"dynamic","factor":2})", "rope_type \"dynamic\"");
  refused("qwen3", R"(,"rope_scaling":{"rope_type":"llama3","factor":2})", "rope_type \"llama3\"");
  refused("llama", R"(,"rope_scaling":{"type":"linear"})", "no factor");
  refused("llama", R"(,"rope_scaling":{"type":"yarn","factor":2,"mscale":0.7})", "mscale");
  refused("qwen3", R"(,"partial_rotary_factor":0.5)", "partial_rotary_factor");
  refused("qwen3", R"(,"rope_parameters":{"full_attention":{"rope_theta":1}})", "per layer type");
}

TEST(HfConfig, LayerPatterns) {
  EXPECT_EQ(parse("qwen3_5", kDelta).recurrent, (std::vector<bool>{true, true, true, false}));
  EXPECT_EQ(parse("qwen3_5", kDelta + R"(,"full_attention_interval":2)").recurrent,
            (std::vector<bool>{true, false, true, false}));
  EXPECT_EQ(parse("qwen4_exp", kDelta + kExperts +
                                   R"(,"full_attention_interval":2,"layer_types":["linear_attention",)"
                                   R"("qwen_sparse_attention","full_attention","linear_attention"])")
                .recurrent,
            (std::vector<bool>{true, false, false, true}));  // the list wins over the interval
  EXPECT_EQ(parse("qwen3", "").recurrent, std::vector<bool>(4, false));
  const std::string types = R"(,"layer_types":["full_attention","full_attention","full_attention",)";
  refused("qwen3", types + "\"sliding_attention\"]", "\"sliding_attention\" for layer 3");
  refused("qwen3", types + "\"linear_attention\"]", "\"linear_attention\" for layer 3");
  refused("qwen3_5", kDelta + types + "\"qwen_sparse_attention\"]", "unsupported entry");
  refused("qwen3", types.substr(0, types.size() - 1) + "]", "num_hidden_layers entries");
}

TEST(HfConfig, Experts) {
  const std::string renamed = R"(,"num_local_experts":8,"num_experts_per_tok":2,"moe_intermediate_size":16)";
  EXPECT_EQ(parse("qwen3_moe", renamed).experts.count, 8u);
  EXPECT_FALSE(parse("qwen3_moe", renamed).experts.normalise);  // the class default
  EXPECT_TRUE(parse("qwen3_moe", renamed + R"(,"norm_topk_prob":true)").experts.normalise);
  EXPECT_TRUE(parse("qwen3_next", kDelta + kExperts).experts.normalise);
  EXPECT_TRUE(parse("qwen3_5_moe", kDelta + kExperts + R"(,"norm_topk_prob":false)").experts.normalise);
  EXPECT_EQ(parse("qwen3_moe", renamed + R"(,"mlp_only_layers":[1])").dense,
            (std::vector<bool>{false, true, false, false}));
  EXPECT_EQ(parse("qwen3_moe", renamed + R"(,"decoder_sparse_step":2)").dense,
            (std::vector<bool>{true, false, true, false}));
  EXPECT_EQ(parse("qwen3", "").dense, std::vector<bool>(4, true));
  EXPECT_EQ(parse("mixtral", R"(,"num_local_experts":4,"num_experts_per_tok":2,"sliding_window":null)").experts.hidden,
            96u);
  refused("qwen3_moe", R"(,"num_experts":4,"num_experts_per_tok":5,"moe_intermediate_size":16)",
          "num_experts_per_tok is 5");
  refused("qwen3_moe", R"(,"num_experts":4,"num_experts_per_tok":0,"moe_intermediate_size":16)",
          "num_experts_per_tok is 0");
}

TEST(HfConfig, IndexerComesWholeOrNotAtAll) {
  const std::string base = kDelta + kExperts;
  const std::string indexer =
      R"(,"indexer_n_heads":4,"indexer_head_dim":24,"indexer_budget":40,"indexer_compress_ratio":8)";
  EXPECT_EQ(parse("qwen4_exp", base + indexer).indexer.budget, 40u);
  EXPECT_EQ(parse("qwen4_exp", base).indexer.heads, 0u);
  refused("qwen4_exp", base + R"(,"indexer_n_heads":4)", "come together");
  refused("qwen4_exp", base + indexer + R"(,"indexer_kv_heads":2)", "indexer_kv_heads");
  refused("qwen4_exp",
          base + R"(,"indexer_n_heads":4,"indexer_head_dim":24,"indexer_budget":41,)"
                 R"("indexer_compress_ratio":8)",
          "not a multiple");
}

TEST(HfConfig, NgramEmbedding) {
  const std::string base = kDelta + kExperts + R"(,"ple_embed_dim":96,"heads_per_ngram":4)";
  const Config c = parse("qwen4_exp", base + R"(,"ple_layer_ids":[3,1],"eos_token_id":[3,5])");
  EXPECT_EQ(c.ple.layers, (std::vector<uint64_t>{2, 0}));  // counted from 0
  EXPECT_EQ(c.ple.heads(), 8u);
  refused("qwen4_exp", base + R"(,"ple_layer_ids":[1])", "eos_token_id is missing");
  refused("qwen4_exp", base + R"(,"ple_layer_ids":[4],"eos_token_id":3)", "no delta net");
  refused("qwen4_exp", base + R"(,"ple_layer_ids":[0],"eos_token_id":3)", "ple_layer_ids is 0");
  refused("qwen4_exp", base + R"(,"ple_layer_ids":[1,1],"eos_token_id":3)", "twice");
}

TEST(HfConfig, OutputGate) {
  const std::string base = kDelta + kExperts;
  EXPECT_TRUE(parse("qwen4_exp", base + R"(,"output_gate_type":"sigmoid")").sigmoid_output_gate);
  EXPECT_FALSE(parse("qwen4_exp", base + R"(,"output_gate_type":null)").sigmoid_output_gate);
  EXPECT_FALSE(parse("qwen3_5", base).sigmoid_output_gate);
  refused("qwen4_exp", base + R"(,"output_gate_type":"tanh")", "output_gate_type \"tanh\"");
  refused("qwen3_5", base + R"(,"output_gate_type":"sigmoid")", "output_gate_type sigmoid");
}

TEST(HfConfig, RangesAndTypes) {
  auto replaced = [](const std::string& key, const std::string& value) {
    return "{\"model_type\":\"qwen3\"," + kBase + ",\"" + key + "\":" + value + "}";  // the last of two keys counts
  };
  const std::vector<std::pair<std::string, std::string>> cases{{"num_hidden_layers", "0"},
                                                               {"num_hidden_layers", "2147483648"},
                                                               {"num_hidden_layers", "-1"},
                                                               {"num_hidden_layers", "\"four\""},
                                                               {"num_hidden_layers", "4.5"},
                                                               {"num_attention_heads", "0"},
                                                               {"num_attention_heads", "3"},
                                                               {"num_key_value_heads", "0"},
                                                               {"head_dim", "0"},
                                                               {"head_dim", "31"},
                                                               {"head_dim", "65537"},
                                                               {"vocab_size", "0"},
                                                               {"vocab_size", "null"},
                                                               {"hidden_size", "99999999999999"},
                                                               {"rms_norm_eps", "\"nan\""},
                                                               {"rms_norm_eps", "-1"},
                                                               {"rope_theta", "0"},
                                                               {"tie_word_embeddings", "1"},
                                                               {"rope_parameters", "[]"},
                                                               {"hidden_act", "\"gelu\""},
                                                               {"eos_token_id", "-4"},
                                                               {"quantization_config", "{}"},
                                                               {"layer_types", "7"}};
  for (const auto& [key, value] : cases)
    EXPECT_THROW(parse_config(replaced(key, value), "config.json", {}), Error) << key << " = " << value;
  EXPECT_EQ(parse_config(replaced("num_hidden_layers", "2.0"), "config.json", {}).layers, 2u);
  for (const char* text : {"", "{", "[]", "3", "{\"model_type\":3}", "{\"rms_norm_eps\":1e999}"})
    EXPECT_THROW(parse_config(text, "config.json", {}), Error) << text;
  refused("qwen3", R"(,"use_sliding_window":true,"sliding_window":4096)", "sliding-window");
  EXPECT_NO_THROW(parse("qwen3", R"(,"use_sliding_window":false,"sliding_window":4096)"));
}

}  // namespace
}  // namespace strata::gguf::hf
