#include "gguf/hf/config.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "gguf/hf/json_text.h"

namespace strata::gguf::hf {
namespace {

using Json = nlohmann::json;
using Names = std::initializer_list<const char*>;

constexpr size_t kMaxConfig = 16u << 20;
constexpr uint64_t kMaxLayers = 4096;
constexpr uint64_t kMaxWidth = 1u << 24;  // hidden sizes, rows of projections
constexpr uint64_t kMaxCount = 1u << 16;  // heads, experts, ranks
constexpr uint64_t kMaxVocab = 1u << 28;
constexpr uint64_t kMaxContext = (1ull << 31) - 1;

struct FamilyEntry {
  Family family;
  std::string_view architecture;
  std::vector<std::string_view> model_types;
  std::string_view class_prefix;  // of the names under "architectures"
};
const std::vector<FamilyEntry>& families() {
  static const std::vector<FamilyEntry> kFamilies{
      {Family::Llama, "llama", {"llama", "mixtral"}, "Llama"},
      {Family::Qwen3, "qwen3", {"qwen3"}, "Qwen3"},
      {Family::Qwen3Moe, "qwen3moe", {"qwen3_moe"}, "Qwen3Moe"},
      {Family::Qwen3Next, "qwen3next", {"qwen3_next"}, "Qwen3Next"},
      {Family::Qwen35, "qwen35", {"qwen3_5", "qwen3_5_text"}, "Qwen3_5"},
      {Family::Qwen35Moe, "qwen35moe", {"qwen3_5_moe", "qwen3_5_moe_text"}, "Qwen3_5Moe"},
      {Family::Qwen4Exp, "qwen4exp", {"qwen4_exp", "qwen4_exp_text"}, "Qwen4Exp"},
  };
  return kFamilies;
}

// One JSON object, read with ranges. A key whose value is null counts as absent.
class Fields {
 public:
  Fields(const Json& object, std::string path) : object_(object), path_(std::move(path)) {}

  [[noreturn]] void fail(const std::string& message) const { throw Error(ErrorKind::Model, message, path_); }

  const Json* find(Names names) const {
    for (const char* name : names) {
      const auto found = object_.find(name);
      if (found != object_.end() && !found->is_null()) return &*found;
    }
    return nullptr;
  }
  bool has(const char* name) const { return find({name}) != nullptr; }

  std::optional<uint64_t> integer(Names names, uint64_t min, uint64_t max) const {
    const Json* value = find(names);
    if (value == nullptr) return std::nullopt;
    return checked(*value, *names.begin(), min, max);
  }
  uint64_t integer_or(Names names, uint64_t fallback, uint64_t min, uint64_t max) const {
    return integer(names, min, max).value_or(fallback);
  }
  uint64_t required(Names names, uint64_t min, uint64_t max) const {
    const auto value = integer(names, min, max);
    if (!value) fail(std::string(*names.begin()) + " is missing");
    return *value;
  }
  std::optional<double> real(const char* name, double min, double max) const {
    const Json* value = find({name});
    if (value == nullptr) return std::nullopt;
    const double number = value->is_number() ? value->get<double>() : NAN;
    if (!(number >= min && number <= max))
      fail(std::string(name) + " is " + text_of(*value) + ", expected a number from " + std::to_string(min) + " to " +
           std::to_string(max));
    return number;
  }
  std::optional<bool> boolean(const char* name) const {
    const Json* value = find({name});
    if (value == nullptr) return std::nullopt;
    if (!value->is_boolean()) fail(std::string(name) + " is " + text_of(*value) + ", expected true or false");
    return value->get<bool>();
  }
  std::optional<std::string> string(Names names) const {
    const Json* value = find(names);
    if (value == nullptr) return std::nullopt;
    if (!value->is_string()) fail(std::string(*names.begin()) + " is " + text_of(*value) + ", expected a string");
    return value->get<std::string>();
  }
  // A number alone counts as a list of one.
  std::vector<uint64_t> integers(const char* name, uint64_t min, uint64_t max, size_t most) const {
    const Json* value = find({name});
    if (value == nullptr) return {};
    if (!value->is_array()) return {checked(*value, name, min, max)};
    if (value->size() > most) fail(std::string(name) + " has more than " + std::to_string(most) + " entries");
    std::vector<uint64_t> list;
    for (const Json& item : *value) list.push_back(checked(item, name, min, max));
    return list;
  }
  Fields object(const char* name) const {
    static const Json kEmpty = Json::object();
    const Json* value = find({name});
    if (value != nullptr && !value->is_object()) fail(std::string(name) + " is not an object");
    return {value != nullptr ? *value : kEmpty, path_};
  }

 private:
  static std::string text_of(const Json& value) {
    return value.dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, 60);
  }
  uint64_t checked(const Json& value, const char* name, uint64_t min, uint64_t max) const {
    std::optional<uint64_t> number;
    if (value.is_number_unsigned()) number = value.get<uint64_t>();
    if (value.is_number_float()) {  // some writers store whole numbers as 32768.0
      const double real = value.get<double>();
      if (real >= 0 && real < 0x1p53 && real == std::floor(real)) number = static_cast<uint64_t>(real);
    }
    if (!number || *number < min || *number > max)
      fail(std::string(name) + " is " + text_of(value) + ", expected an integer from " + std::to_string(min) + " to " +
           std::to_string(max));
    return *number;
  }

  const Json& object_;
  std::string path_;
};

std::optional<Family> family_of_type(const std::string& model_type) {
  for (const FamilyEntry& entry : families())
    if (std::count(entry.model_types.begin(), entry.model_types.end(), model_type) != 0) return entry.family;
  return std::nullopt;
}

std::optional<Family> family_of_class(const std::string& name) {
  for (const FamilyEntry& entry : families())
    for (const char* suffix : {"ForCausalLM", "ForConditionalGeneration"})
      if (name == std::string(entry.class_prefix) + suffix) return entry.family;
  return std::nullopt;
}

[[noreturn]] void unsupported(const Fields& fields, const std::string& what) {
  std::string list;
  for (const FamilyEntry& entry : families())
    for (const std::string_view type : entry.model_types) list += (list.empty() ? "" : ", ") + std::string(type);
  fields.fail(what + " is not supported; supported model types: " + list);
}

Family read_family(const Fields& top, const Fields& text) {
  std::optional<Family> family;
  for (const Fields* fields : {&top, &text}) {
    const auto type = fields->string({"model_type"});
    if (!type) continue;
    const auto found = family_of_type(*type);
    if (!found) unsupported(*fields, "model_type \"" + *type + "\"");
    if (family && *family != *found) unsupported(*fields, "a text model of another family (\"" + *type + "\")");
    family = found;
  }
  if (family) return *family;
  const Json* classes = top.find({"architectures"});
  if (classes == nullptr || !classes->is_array() || classes->empty() || !classes->front().is_string())
    top.fail("states neither model_type nor architectures");
  const std::string name = classes->front().get<std::string>();
  family = family_of_class(name);
  if (!family) unsupported(top, "architecture \"" + name + "\"");
  return *family;
}

void read_base(const Fields& f, Config& c) {
  c.vocab = f.required({"vocab_size"}, 1, kMaxVocab);
  c.hidden = f.required({"hidden_size"}, 1, kMaxWidth);
  c.layers = f.required({"num_hidden_layers"}, 1, kMaxLayers);
  c.heads = f.required({"num_attention_heads"}, 1, kMaxCount);
  c.kv_heads = f.integer_or({"num_key_value_heads"}, c.heads, 1, kMaxCount);
  if (c.heads % c.kv_heads != 0) f.fail("num_attention_heads is not a multiple of num_key_value_heads");
  uint64_t head_dim = c.hidden / c.heads;
  if (c.family == Family::Qwen3) head_dim = 128;
  if (is_hybrid(c.family)) head_dim = 256;
  c.head_dim = f.integer_or({"head_dim"}, head_dim, 2, kMaxCount);
  if (c.head_dim < 2 || c.head_dim % 2 != 0) f.fail("head_dim is odd or zero");
  c.context = f.integer_or({"max_position_embeddings"}, 32768, 1, kMaxContext);
  c.intermediate = f.integer_or({"intermediate_size"}, 0, 0, kMaxWidth);
  c.norm_epsilon = f.real("rms_norm_eps", 0, 1).value_or(1e-6);
  c.tied = f.boolean("tie_word_embeddings");
  c.eos = f.integers("eos_token_id", 0, kMaxVocab, 64);
  c.bos = f.integer({"bos_token_id"}, 0, kMaxVocab);
  c.pad = f.integer({"pad_token_id"}, 0, kMaxVocab);
  c.image_token = f.integer({"image_token_id"}, 0, kMaxVocab);
}

void refuse_what_no_file_can_say(const Fields& f, const Config& c) {
  if (f.has("quantization_config"))
    f.fail("the checkpoint is already quantised (quantization_config); convert the unquantised release instead");
  const std::string act = f.string({"hidden_act"}).value_or("silu");
  if (act != "silu" && act != "swish") f.fail("hidden_act \"" + act + "\" is not supported, only silu");
  const bool window = f.boolean("use_sliding_window").value_or(c.family == Family::Llama);
  if (window && f.has("sliding_window")) f.fail("sliding-window attention is not supported");
  if (f.boolean("attn_output_gate") == false && is_hybrid(c.family)) f.fail("attn_output_gate false is not supported");
}

RopeScaling read_scaling_type(const Fields& rope, Family family) {
  const std::string type = rope.string({"rope_type", "type"}).value_or("default");
  if (type == "default" || type == "mrope" || type == "none") return RopeScaling::None;
  if (type == "linear") return RopeScaling::Linear;
  if (type == "yarn") return RopeScaling::Yarn;
  if (type == "llama3" && family == Family::Llama) return RopeScaling::Llama3;
  rope.fail("rope_type \"" + type + "\" is not supported for " + std::string(architecture(family)));
}

void read_sections(const Fields& rope, Config& c, const Warn& warn) {
  const auto sections = rope.integers("mrope_section", 0, kMaxCount, 4);
  if (!sections.empty()) c.rope.sections = {0, 0, 0, 0};
  for (size_t i = 0; i < sections.size(); ++i) c.rope.sections[i] = static_cast<int64_t>(sections[i]);
  for (uint64_t pair = 0; pair < c.rope.dimensions / 2; ++pair)
    if (static_cast<int64_t>(pair) >= 3 * c.rope.sections[pair % 3]) {
      warn("mrope_section leaves rotation pair " + std::to_string(pair) +
           " without an axis: llama.cpp does not rotate it, Strata uses the text position as HF does");
      break;
    }
}

void read_rope(const Fields& f, Config& c, const Warn& warn) {
  const Fields rope = f.object(f.has("rope_parameters") ? "rope_parameters" : "rope_scaling");
  for (const char* kind : {"full_attention", "sliding_attention"})
    if (rope.has(kind)) rope.fail("rope parameters per layer type are not supported");
  RopeConfig& r = c.rope;
  auto either = [&](const char* name, double min, double max) {
    const auto value = rope.real(name, min, max);
    return value ? value : f.real(name, min, max);
  };
  r.theta = either("rope_theta", 1, 1e15).value_or(10000);
  const double part = either("partial_rotary_factor", 1e-6, 1).value_or(is_hybrid(c.family) ? 0.25 : 1.0);
  if (!is_hybrid(c.family) && part != 1) f.fail("partial_rotary_factor is not supported for this family");
  r.dimensions = static_cast<uint64_t>(static_cast<double>(c.head_dim) * part);
  if (r.dimensions < 2 || r.dimensions % 2 != 0)
    f.fail("partial_rotary_factor gives " + std::to_string(r.dimensions) + " rotated dimensions of " +
           std::to_string(c.head_dim) + "; an even number is needed");
  if (is_hybrid(c.family) && c.family != Family::Qwen3Next) read_sections(rope, c, warn);

  r.scaling = read_scaling_type(rope, c.family);
  if (r.scaling == RopeScaling::None) return;
  const auto factor = rope.real("factor", 1e-3, 1e6);
  if (!factor) rope.fail("rope scaling states no factor");
  r.factor = *factor;
  r.original_context = rope.integer_or({"original_max_position_embeddings"}, c.context, 1, kMaxContext);
  r.low_freq_factor = rope.real("low_freq_factor", 1e-6, 1e6).value_or(1);
  r.high_freq_factor = rope.real("high_freq_factor", 1e-6, 1e6).value_or(4);
  if (r.scaling == RopeScaling::Llama3 && r.high_freq_factor <= r.low_freq_factor)
    rope.fail("high_freq_factor must be above low_freq_factor");
  r.beta_fast = rope.real("beta_fast", 1e-6, 1e6);
  r.beta_slow = rope.real("beta_slow", 1e-6, 1e6);
  r.extrapolation = rope.real("extrapolation_factor", 0, 1e6);
  r.attention_factor = rope.real("attention_factor", 1e-6, 1e6);
  if (r.scaling == RopeScaling::Yarn &&
      (rope.has("mscale") || rope.has("mscale_all_dim") || rope.boolean("truncate") == false))
    rope.fail("yarn with mscale or without truncation is not supported");
}

void read_layer_types(const Fields& f, Config& c) {
  c.recurrent.assign(c.layers, false);
  const Json* types = f.find({"layer_types"});
  if (types == nullptr) {
    if (!is_hybrid(c.family)) return;
    const uint64_t interval = f.integer_or({"full_attention_interval"}, 4, 1, kMaxLayers);
    for (uint64_t i = 0; i < c.layers; ++i) c.recurrent[i] = (i + 1) % interval != 0;
    return;
  }
  if (!types->is_array() || types->size() != c.layers) f.fail("layer_types does not have num_hidden_layers entries");
  for (uint64_t i = 0; i < c.layers; ++i) {
    const Json& item = (*types)[i];
    const std::string type = item.is_string() ? item.get<std::string>() : "";
    c.recurrent[i] = is_hybrid(c.family) && type == "linear_attention";
    const bool attention =
        type == "full_attention" || (c.family == Family::Qwen4Exp && type == "qwen_sparse_attention");
    if (!c.recurrent[i] && !attention)
      f.fail("layer_types has the unsupported entry \"" + type.substr(0, 64) + "\" for layer " + std::to_string(i));
  }
}

bool has_experts(const Fields& f, Family family) {
  if (family == Family::Llama) return f.integer_or({"num_local_experts", "num_experts"}, 0, 0, kMaxCount) > 0;
  return family != Family::Qwen3 && family != Family::Qwen35;
}

void read_experts(const Fields& f, Config& c) {
  c.dense.assign(c.layers, !has_experts(f, c.family));
  if (!has_experts(f, c.family)) {
    if (c.intermediate == 0) f.fail("intermediate_size is missing");
    return;
  }
  ExpertConfig& e = c.experts;
  e.count = f.required({"num_experts", "num_local_experts"}, 1, kMaxCount);
  e.used = f.required({"num_experts_per_tok"}, 1, e.count);
  e.hidden = c.family == Family::Llama ? f.required({"intermediate_size"}, 1, kMaxWidth)
                                       : f.required({"moe_intermediate_size"}, 1, kMaxWidth);
  if (is_hybrid(c.family)) e.shared_hidden = f.required({"shared_expert_intermediate_size"}, 1, kMaxWidth);
  // The class default of qwen3_moe is false; in qwen3_5_moe and llama (Mixtral) there is no such choice.
  if (c.family == Family::Qwen3Moe) e.normalise = f.boolean("norm_topk_prob").value_or(false);
  if (c.family == Family::Qwen3Next || c.family == Family::Qwen4Exp)
    e.normalise = f.boolean("norm_topk_prob").value_or(true);
  if (c.family != Family::Qwen3Moe && c.family != Family::Qwen3Next) return;
  const uint64_t step = f.integer_or({"decoder_sparse_step"}, 1, 1, kMaxLayers);
  for (uint64_t i = 0; i < c.layers; ++i) c.dense[i] = (i + 1) % step != 0;
  for (const uint64_t layer : f.integers("mlp_only_layers", 0, c.layers - 1, kMaxLayers)) c.dense[layer] = true;
  if (std::count(c.dense.begin(), c.dense.end(), true) != 0 && c.intermediate == 0)
    f.fail("intermediate_size is missing, and some layers are dense");
}

void read_delta_net(const Fields& f, Config& c) {
  DeltaNetConfig& d = c.delta;
  d.conv_kernel = f.integer_or({"linear_conv_kernel_dim"}, 4, 2, 64);
  d.key_dim = f.required({"linear_key_head_dim"}, 1, kMaxCount);
  d.value_dim = f.required({"linear_value_head_dim"}, 1, kMaxCount);
  d.key_heads = f.required({"linear_num_key_heads"}, 1, kMaxCount);
  d.value_heads = f.required({"linear_num_value_heads"}, 1, kMaxCount);
  if (d.value_heads % d.key_heads != 0) f.fail("linear_num_value_heads is not a multiple of linear_num_key_heads");
  c.mtp_layers = f.integer({"mtp_num_hidden_layers"}, 0, 64);
  const std::string fallback = f.string({"hidden_act"}).value_or("silu");
  const std::string gate = f.string({"output_gate_type"}).value_or(fallback);
  c.sigmoid_output_gate = gate == "sigmoid";
  if (gate != "sigmoid" && gate != "silu" && gate != "swish")
    f.fail("output_gate_type \"" + gate + "\" is not supported");
  if (c.sigmoid_output_gate && c.family != Family::Qwen4Exp)
    f.fail("output_gate_type sigmoid is not supported for " + std::string(architecture(c.family)));
}

void read_indexer(const Fields& f, Config& c) {
  const Names keys{"indexer_n_heads", "indexer_head_dim", "indexer_budget", "indexer_compress_ratio"};
  const auto stated = std::count_if(keys.begin(), keys.end(), [&](const char* key) { return f.has(key); });
  if (stated == 0) return;
  if (stated != 4) f.fail("some indexer keys are missing: heads, head_dim, budget and compress_ratio come together");
  if (f.integer_or({"indexer_kv_heads"}, 1, 1, kMaxCount) != 1) f.fail("indexer_kv_heads must be 1");
  IndexerConfig& x = c.indexer;
  x.heads = f.required({"indexer_n_heads"}, 1, kMaxCount);
  x.head_dim = f.required({"indexer_head_dim"}, 1, kMaxCount);
  x.ratio = f.required({"indexer_compress_ratio"}, 1, kMaxCount);
  x.budget = f.required({"indexer_budget"}, 1, kMaxContext);
  if (x.budget % x.ratio != 0) f.fail("indexer_budget is not a multiple of indexer_compress_ratio");
  if (c.rope.dimensions > x.head_dim) f.fail("indexer_head_dim is below the number of rotated dimensions");
}

void read_ple(const Fields& f, Config& c) {
  PleConfig& p = c.ple;
  for (const uint64_t layer : f.integers("ple_layer_ids", 1, c.layers, kMaxLayers)) {
    if (std::count(p.layers.begin(), p.layers.end(), layer - 1) != 0) f.fail("ple_layer_ids names a layer twice");
    if (!c.recurrent[layer - 1])
      f.fail("ple_layer_ids names layer " + std::to_string(layer) + ", which is no delta net");
    p.layers.push_back(layer - 1);
  }
  if (p.layers.empty()) return;
  if (c.eos.empty()) f.fail("eos_token_id is missing: the n-gram embedding needs it");
  p.embed_dim = f.integer_or({"ple_embed_dim"}, c.hidden, 1, kMaxWidth);
  p.conv_kernel = f.integer_or({"ple_conv_kernel_size"}, 4, 2, 64);
  p.ngram_size = f.integer_or({"ngram_size"}, 3, 2, 16);
  p.heads_per_ngram = f.integer_or({"heads_per_ngram"}, 8, 1, 1024);
  p.parts = f.integer_or({"split_ngram_parts"}, 512, 1, kMaxCount);
  if (p.embed_dim % p.heads() != 0) f.fail("ple_embed_dim is not a multiple of the number of n-gram heads");
}

Json merged_text_config(const Json& top) {
  Json merged = top;
  const auto text = top.find("text_config");
  if (text == top.end() || !text->is_object()) return merged;
  merged.erase("text_config");
  for (const auto& [key, value] : text->items())
    if (!value.is_null()) merged[key] = value;
  return merged;
}

}  // namespace

std::string_view architecture(Family family) {
  for (const FamilyEntry& entry : families())
    if (entry.family == family) return entry.architecture;
  return "unknown";
}

bool is_hybrid(Family family) {
  return family == Family::Qwen3Next || family == Family::Qwen35 || family == Family::Qwen35Moe ||
         family == Family::Qwen4Exp;
}

Config parse_config(const std::string& json, const std::string& path, const Warn& warn) {
  const Json top = Json::parse(json, nullptr, false);
  if (!top.is_object()) throw Error(ErrorKind::Format, "is not a JSON object", path);
  const Json merged = merged_text_config(top);
  const Fields fields(merged, path);
  Config config;
  config.family = read_family(Fields(top, path), fields);
  read_base(fields, config);
  refuse_what_no_file_can_say(fields, config);
  read_rope(fields, config, warn);
  read_layer_types(fields, config);
  read_experts(fields, config);
  if (is_hybrid(config.family)) read_delta_net(fields, config);
  if (config.family == Family::Qwen4Exp) {
    config.streams = fields.integer_or({"hc_count"}, 4, 2, 64);
    config.stream_rank = fields.integer_or({"hc_lowrank"}, 320, 1, kMaxCount);
    read_indexer(fields, config);
    read_ple(fields, config);
  }
  return config;
}

Config read_config(const std::string& directory, const Warn& warn) {
  const std::string path = (std::filesystem::path(directory) / "config.json").string();
  return parse_config(read_json_text(path, kMaxConfig), path, warn);
}

}  // namespace strata::gguf::hf
