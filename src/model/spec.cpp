#include "model/spec.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/error.h"
#include "model/spec_reader.h"

namespace strata {
namespace {

constexpr int64_t kMaxBlocks = 4096, kMaxWidth = 1 << 20, kMaxHeads = 4096, kMaxHeadDim = 4096, kMaxExperts = 65536;

// What a family is made of, beyond the numbers in the file.
struct Family {
  const char* arch;
  RopePairs pairs;
  bool qk_norm, gated, hybrid, experts, hyper;
  HeadMapping mapping;
  Activation output_gate;
};

constexpr Family kFamilies[] = {
    {"llama", RopePairs::Adjacent, false, false, false, false, false, HeadMapping::Grouped, Activation::Silu},
    {"qwen3", RopePairs::HalfSplit, true, false, false, false, false, HeadMapping::Grouped, Activation::Silu},
    {"qwen3moe", RopePairs::HalfSplit, true, false, false, true, false, HeadMapping::Grouped, Activation::Silu},
    {"qwen3next", RopePairs::HalfSplit, true, true, true, true, false, HeadMapping::Grouped, Activation::Silu},
    {"qwen35", RopePairs::HalfSplit, true, true, true, false, false, HeadMapping::Tiled, Activation::Silu},
    {"qwen35moe", RopePairs::HalfSplit, true, true, true, true, false, HeadMapping::Tiled, Activation::Silu},
    {"qwen4exp", RopePairs::HalfSplit, true, true, true, true, true, HeadMapping::Tiled, Activation::Sigmoid},
};

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

const Family& family_of(const gguf::File& file) {
  const auto arch = file.get_string("general.architecture");
  if (!arch) throw Error(ErrorKind::Model, "general.architecture is missing: not a model file", file.path());
  for (const Family& family : kFamilies)
    if (*arch == family.arch) return family;
  throw Error(ErrorKind::Model,
              "unknown architecture '" + gguf::printable(*arch) + "'; this build runs " + joined(known_architectures()),
              file.path());
}

// none, linear or yarn. A factor alone means linear where the file has no scaling.
std::string scaling_type(const SpecReader& in, const RopeOverride& wanted) {
  std::string scaling = in.file().get_string(in.key("rope.scaling.type")).value_or("none");
  if (scaling == "none" && wanted.scaling.empty() && wanted.factor > 0) scaling = "linear";
  if (!wanted.scaling.empty()) scaling = wanted.scaling;
  if (scaling != "none" && scaling != "linear" && scaling != "yarn")
    in.fail("rope.scaling.type", "is '" + gguf::printable(scaling) + "'; this build knows none, linear and yarn");
  if (scaling == "none" && wanted.factor > 0)
    throw Error(ErrorKind::Usage, "--rope-scale has no meaning with --rope-scaling none: take linear or yarn");
  const bool yarn_settings = wanted.original_context > 0 || wanted.attention_factor > 0 || wanted.ext >= 0 ||
                             wanted.beta_fast > 0 || wanted.beta_slow > 0;
  if (scaling != "yarn" && yarn_settings)
    throw Error(ErrorKind::Usage,
                "--yarn-* settings have no meaning with RoPE scaling " + scaling + ": add --rope-scaling yarn");
  return scaling;
}

// The scaling covers `factor` times so many positions.
void extend_context(ModelSpec& spec, double original) {
  const double covered = std::min(original * spec.rope.factor, static_cast<double>(kMaxContext));
  spec.context = std::max(spec.context, static_cast<int64_t>(covered));
}

void read_rope(const SpecReader& in, const RopeOverride& wanted, int head_dim, ModelSpec& spec) {
  RopeParams& rope = spec.rope;
  rope.rotary_dims = in.integer_or("rope.dimension_count", 2, head_dim, head_dim);
  if (rope.rotary_dims % 2 != 0) in.fail("rope.dimension_count", "is odd");
  if (rope.pairs == RopePairs::Adjacent && rope.rotary_dims != head_dim)
    in.fail("rope.dimension_count", "must equal the head dim " + std::to_string(head_dim));
  rope.base = wanted.base > 0 ? wanted.base : in.real_or("rope.freq_base", 1.0001, 1e15, 10000);
  const std::string scaling = scaling_type(in, wanted);
  if (scaling == "none") return;
  rope.scaling = scaling == "yarn" ? RopeScaling::Yarn : RopeScaling::Linear;
  rope.factor = wanted.factor > 0 ? wanted.factor : in.real_or("rope.scaling.factor", 1e-3, 1e4, 1);
  if (rope.scaling == RopeScaling::Linear) {
    if (wanted.factor > 0) extend_context(spec, static_cast<double>(spec.context));
    return;
  }
  auto chosen = [&](double by_user, const char* key, double min, double max, double otherwise) {
    return by_user > 0 ? by_user : in.real_or(key, min, max, otherwise);
  };
  rope.original_context = wanted.original_context > 0 ? wanted.original_context
                                                      : in.integer_or("rope.scaling.original_context_length", 1,
                                                                      INT32_MAX, static_cast<int>(spec.context));
  rope.beta_fast = chosen(wanted.beta_fast, "rope.scaling.yarn_beta_fast", 1e-3, 1e6, 32);
  rope.beta_slow = chosen(wanted.beta_slow, "rope.scaling.yarn_beta_slow", 1e-3, 1e6, 1);
  rope.ext = wanted.ext >= 0 ? wanted.ext : in.real_or("rope.scaling.yarn_ext_factor", 0, 1, 1);
  rope.attention_factor = chosen(wanted.attention_factor, "rope.scaling.yarn_attn_factor", 0, 100, 0);
  extend_context(spec, rope.original_context);
}

// What cos and sin are multiplied by when no factor is stated.
double yarn_magnitude(const RopeParams& rope) {
  return rope.ext != 0 && rope.factor > 1 ? 1 + 0.1 * std::log(rope.factor) : 1;
}

// rope.scaling.attn_factor multiplies m, whether m was stated or follows from the factor.
void apply_attn_factor(const SpecReader& in, RopeParams& rope) {
  const double factor = in.real_or("rope.scaling.attn_factor", 1e-3, 100, 1);
  if (rope.scaling != RopeScaling::Yarn || factor == 1) return;
  rope.attention_factor = (rope.attention_factor > 0 ? rope.attention_factor : yarn_magnitude(rope)) * factor;
}

void read_delta(const SpecReader& in, const Family& family, ModelSpec& spec) {
  DeltaSpec& delta = spec.delta;
  delta.conv_width = in.integer("ssm.conv_kernel", 2, 64);
  delta.dk = in.integer("ssm.state_size", 1, kMaxHeadDim);
  delta.key_heads = in.integer("ssm.group_count", 1, kMaxHeads);
  delta.value_heads = in.integer("ssm.time_step_rank", 1, kMaxHeads);
  const int inner = in.integer("ssm.inner_size", 1, kMaxWidth);
  if (delta.value_heads % delta.key_heads != 0)
    in.fail("ssm.time_step_rank", "is no multiple of ssm.group_count " + std::to_string(delta.key_heads));
  if (inner % delta.value_heads != 0)
    in.fail("ssm.inner_size", "is no multiple of ssm.time_step_rank " + std::to_string(delta.value_heads));
  delta.dv = inner / delta.value_heads;
  if (delta.dv > kMaxHeadDim)
    in.fail("ssm.inner_size",
            "gives heads of " + std::to_string(delta.dv) + ", at most " + std::to_string(kMaxHeadDim));
  delta.mapping = family.mapping;
  delta.output_gate = family.output_gate;
  if (const auto gate = in.file().get_string(in.key("ssm.output_gate"))) {
    if (*gate != "silu" && *gate != "sigmoid")
      in.fail("ssm.output_gate", "is '" + gguf::printable(*gate) + "', not silu or sigmoid");
    delta.output_gate = *gate == "silu" ? Activation::Silu : Activation::Sigmoid;
  }
}

// States are written in full by the first token: the only memory whose size is a product that no tensor has.
void check_states(const SpecReader& in, const ModelSpec& spec) {
  constexpr int64_t kAlways = int64_t{32} << 20;
  const DeltaSpec& delta = spec.delta;
  const int64_t layers = std::count_if(spec.layers.begin(), spec.layers.end(),
                                       [](const LayerSpec& layer) { return layer.mixer == MixerKind::GatedDelta; });
  const int64_t bytes = layers * delta.value_heads * delta.dk * delta.dv * static_cast<int64_t>(sizeof(float));
  const auto file_bytes = static_cast<int64_t>(in.file().file_bytes());
  if (bytes <= kAlways || bytes - kAlways <= file_bytes) return;
  in.fail("ssm.state_size", "is " + std::to_string(delta.dk) + ", which gives a sequence states of " +
                                std::to_string(bytes) + " bytes: out of proportion to a file of " +
                                std::to_string(file_bytes));
}

void read_experts(const SpecReader& in, ModelSpec& spec) {
  ExpertsSpec& experts = spec.experts;
  const int blocks = static_cast<int>(spec.layers.size());
  experts.count = in.integer("expert_count", 1, kMaxExperts);
  experts.used = in.shared("expert_used_count", blocks, kMaxExperts);
  if (experts.used > experts.count)
    in.fail("expert_used_count", "is " + std::to_string(experts.used) + " of only " + std::to_string(experts.count));
  const bool stated = in.has("expert_feed_forward_length");
  experts.inner = in.shared(stated ? "expert_feed_forward_length" : "feed_forward_length", blocks, kMaxWidth);
  experts.shared_inner = in.integer_or("expert_shared_feed_forward_length", 0, kMaxWidth, 0);
  experts.scale = static_cast<float>(in.real_or("expert_weights_scale", 0, 1e4, 1));
  if (experts.scale == 0) experts.scale = 1;
  experts.normalise = in.file().get_bool(in.key("expert_weights_norm")).value_or(true);
}

void read_ngrams(const SpecReader& in, ModelSpec& spec) {
  if (!in.has("ple.layers")) return;
  const auto layers = in.file().get_uints(in.key("ple.layers"), 0, spec.layers.size() - 1);
  const int order = in.integer("ple.ngram_size", 2, 16), heads = in.integer("ple.heads_per_ngram", 1, 1024);
  const auto modules = layers->size();
  const auto per_module = static_cast<size_t>((order - 1) * heads);
  const auto multipliers = in.numbers("ple.layer_multipliers", modules * static_cast<size_t>(order), 1, UINT64_MAX);
  const auto sizes = in.numbers("ple.head_vocab_sizes", modules * per_module, 1, INT64_MAX);
  const auto offsets = in.numbers("ple.head_offsets", modules * per_module, 0, INT64_MAX);
  for (size_t module = 0; module < modules; ++module) {
    LayerSpec& layer = spec.layers[(*layers)[module]];
    if (layer.mixer != MixerKind::GatedDelta || layer.ngram >= 0)
      in.fail("ple.layers",
              "names layer " + std::to_string((*layers)[module]) + ", which is no delta-net layer or is named twice");
    layer.ngram = static_cast<int>(module);
    NgramSpec ngram;
    ngram.width = in.integer("embedding_length_per_layer_input", 1, kMaxWidth);
    ngram.conv_width = in.integer("ple.conv_kernel", 2, 64);
    ngram.params.orders = order - 1;
    ngram.params.heads = heads;
    ngram.params.eos = in.integer("ple.eos_token_id", 0, spec.vocabulary - 1);
    auto part = [&](const std::vector<uint64_t>& all, size_t count) {
      const auto first = all.begin() + static_cast<int64_t>(module * count);
      return std::vector<uint64_t>(first, first + static_cast<int64_t>(count));
    };
    ngram.params.multipliers = part(multipliers, static_cast<size_t>(order));
    ngram.params.head_sizes = part(sizes, per_module);
    ngram.params.head_offsets = part(offsets, per_module);
    spec.ngrams.push_back(std::move(ngram));
  }
}

void read_hyper(const SpecReader& in, ModelSpec& spec) {
  spec.streams = in.integer("hyper_connection.count", 2, 64);
  spec.low_rank = in.integer("hyper_connection.low_rank", 1, kMaxWidth);
  const int blocks = static_cast<int>(spec.layers.size());
  const std::vector<int> ratios = in.per_block_or("attention.compress_ratios", blocks, 0, 4096, 0);
  for (int i = 0; i < blocks; ++i) {
    LayerSpec& layer = spec.layers[static_cast<size_t>(i)];
    if (layer.mixer != MixerKind::Attention || ratios[static_cast<size_t>(i)] == 0) continue;
    IndexerSpec& indexer = layer.indexer;
    indexer.ratio = ratios[static_cast<size_t>(i)];
    indexer.heads = in.integer("attention.indexer.head_count", 1, 256);
    indexer.dim = in.integer("attention.indexer.key_length", spec.rope.rotary_dims, kMaxHeadDim);
    indexer.budget = in.integer("attention.indexer.top_k", indexer.ratio, INT32_MAX - 4096);
    if (indexer.budget % indexer.ratio != 0)
      in.fail("attention.indexer.top_k", "is no multiple of the ratio " + std::to_string(indexer.ratio));
  }
  read_ngrams(in, spec);
}

// Which blocks are delta net: the list of the file, else every block but each interval-th. MTP blocks never are.
void read_layer_kinds(const SpecReader& in, const Family& family, ModelSpec& spec) {
  const int blocks = static_cast<int>(spec.layers.size());
  if (!family.hybrid) return;
  std::vector<int> recurrent(static_cast<size_t>(blocks));
  if (in.has("attention.recurrent_layers")) {
    recurrent = in.per_block("attention.recurrent_layers", blocks, 0, 1);
  } else {
    const int interval = in.integer_or("full_attention_interval", 1, kMaxBlocks, 4);
    for (int i = 0; i < blocks; ++i) recurrent[static_cast<size_t>(i)] = (i + 1) % interval != 0;
  }
  for (int i = 0; i < spec.trunk_layers(); ++i)
    if (recurrent[static_cast<size_t>(i)] != 0) spec.layers[static_cast<size_t>(i)].mixer = MixerKind::GatedDelta;
}

void read_layers(const SpecReader& in, const Family& family, ModelSpec& spec) {
  const int blocks = static_cast<int>(spec.layers.size());
  const std::vector<int> heads = in.per_block("attention.head_count", blocks, 1, kMaxHeads);
  const std::vector<int> kv_heads =
      in.has("attention.head_count_kv") ? in.per_block("attention.head_count_kv", blocks, 0, kMaxHeads) : heads;
  const std::vector<int> inner = in.per_block_or("feed_forward_length", blocks, 0, kMaxWidth, 0);
  const int default_dim = static_cast<int>(spec.hidden / heads[0]);
  if (!in.has("attention.key_length") && spec.hidden % heads[0] != 0)
    in.fail("attention.head_count", "is " + std::to_string(heads[0]) + ", which does not divide embedding_length " +
                                        std::to_string(spec.hidden) + ", and attention.key_length is missing");
  const int head_dim = in.integer_or("attention.key_length", 1, kMaxHeadDim, default_dim);
  if (in.integer_or("attention.value_length", 1, kMaxHeadDim, default_dim) != head_dim)
    in.fail("attention.value_length", "differs from attention.key_length " + std::to_string(head_dim));
  const double scale = in.real_or("attention.scale", 0, 1e3, 0);
  read_layer_kinds(in, family, spec);
  for (int i = 0; i < blocks; ++i) {
    LayerSpec& layer = spec.layers[static_cast<size_t>(i)];
    layer.inner = inner[static_cast<size_t>(i)];
    const std::string block = "blk." + std::to_string(i) + ".ffn_gate_inp.weight";
    if (spec.experts.count > 0 && in.file().find_tensor(block) != nullptr) layer.mlp = MlpKind::Experts;
    if (layer.mixer != MixerKind::Attention) continue;
    layer.attention = {heads[static_cast<size_t>(i)],
                       kv_heads[static_cast<size_t>(i)],
                       head_dim,
                       family.gated,
                       family.qk_norm,
                       static_cast<float>(scale > 0 ? scale : 1 / std::sqrt(double{1} * head_dim))};
    if (layer.attention.kv_heads < 1 || layer.attention.heads % layer.attention.kv_heads != 0)
      in.fail("attention.head_count_kv", "is " + std::to_string(layer.attention.kv_heads) + " in block " +
                                             std::to_string(i) + ", which does not divide " +
                                             std::to_string(layer.attention.heads) + " heads");
  }
}

}  // namespace

const std::vector<std::string>& known_architectures() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const Family& family : kFamilies) list.emplace_back(family.arch);
    return list;
  }();
  return names;
}

ModelSpec read_spec(const gguf::File& file, const RopeOverride& rope) {
  const Family& family = family_of(file);
  const SpecReader in(file, family.arch);
  ModelSpec spec;
  spec.arch = family.arch;
  spec.name = file.get_string("general.name").value_or("");
  spec.hidden = in.integer("embedding_length", 1, kMaxWidth);
  spec.context = std::min<int64_t>(in.integer("context_length", 1, INT32_MAX), kMaxContext);
  spec.eps = static_cast<float>(in.real("attention.layer_norm_rms_epsilon", 1e-12, 1));
  spec.layers.resize(static_cast<size_t>(in.integer("block_count", 1, kMaxBlocks)));
  spec.mtp_layers = in.integer_or("nextn_predict_layers", 0, static_cast<int64_t>(spec.layers.size()) - 1, 0);
  const gguf::TensorInfo* table = file.find_tensor("token_embd.weight");
  if (table == nullptr) throw Error(ErrorKind::Model, "tensor token_embd.weight is missing", file.path());
  if (table->ne[1] > (1u << 24)) throw Error(ErrorKind::Model, "the vocabulary has over 2^24 entries", file.path());
  spec.vocabulary = static_cast<int64_t>(table->ne[1]);
  if (family.experts || (in.has("expert_count") && in.integer("expert_count", 0, kMaxExperts) > 0))
    read_experts(in, spec);
  if (family.hybrid) read_delta(in, family, spec);
  read_layers(in, family, spec);
  check_states(in, spec);
  spec.rope.pairs = family.pairs;
  const auto attention = std::find_if(spec.layers.begin(), spec.layers.end(),
                                      [](const LayerSpec& layer) { return layer.mixer == MixerKind::Attention; });
  const int default_dim = in.integer_or("attention.key_length", 1, kMaxHeadDim, 64);
  read_rope(in, rope, attention == spec.layers.end() ? default_dim : attention->attention.head_dim, spec);
  apply_attn_factor(in, spec.rope);
  if (family.hyper) read_hyper(in, spec);
  return spec;
}

std::string describe(const ModelSpec& spec) {
  int delta = 0, sparse = 0, dense = 0;
  for (int i = 0; i < spec.trunk_layers(); ++i) {
    const LayerSpec& layer = spec.layers[static_cast<size_t>(i)];
    if (layer.mixer == MixerKind::GatedDelta)
      ++delta;
    else
      ++(layer.indexer.ratio > 0 ? sparse : dense);
  }
  std::string text = spec.arch + ", " + std::to_string(spec.trunk_layers()) + " layers (";
  std::string parts;
  auto add = [&](int count, const char* what) {
    if (count > 0) parts += (parts.empty() ? "" : ", ") + std::to_string(count) + " " + what;
  };
  add(delta, "delta net");
  add(sparse, "QSA");
  add(dense, "attention");
  text += parts + "), hidden " + std::to_string(spec.hidden);
  if (spec.experts.count > 0)
    text += ", " + std::to_string(spec.experts.used) + " of " + std::to_string(spec.experts.count) + " experts";
  if (spec.hyper()) text += ", " + std::to_string(spec.streams) + " streams";
  if (!spec.ngrams.empty()) text += ", n-gram table";
  if (spec.mtp_layers > 0) text += ", MTP";
  return text;
}

std::string describe_rope(const ModelSpec& spec) {
  const RopeParams& rope = spec.rope;
  auto number = [](double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.5g", value);
    return std::string(text);
  };
  if (rope.scaling == RopeScaling::None) return {};
  if (rope.scaling == RopeScaling::Linear)
    return "linear, scale " + number(rope.factor) + ": " + std::to_string(spec.context) + " positions";
  const double usual = yarn_magnitude(rope);
  std::string text = "YaRN, scale " + number(rope.factor) + ": " +
                     std::to_string(static_cast<int64_t>(rope.original_context)) + " to " +
                     std::to_string(spec.context) + " positions, attention factor ";
  if (rope.attention_factor > 0)
    return text + number(rope.attention_factor) + " as stated (engines that replace it take " + number(usual) + ")";
  return text + number(usual);
}

}  // namespace strata
