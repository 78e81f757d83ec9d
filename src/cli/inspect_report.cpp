#include "cli/inspect_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "gguf/quant.h"
#include "model/model.h"
#include "model/sequence.h"
#include "runtime/vocabulary.h"
#include "text/chat.h"

namespace strata::cli {
namespace {

using Json = nlohmann::ordered_json;
using gguf::printable;

constexpr size_t kShownItems = 6;   // of a long array
constexpr size_t kWholeArray = 16;  // arrays up to this length are shown whole
constexpr size_t kShownCharacters = 120;

// The number with the fewest digits that is this f32: 1e-06, not 9.999999974752427e-07.
double shortest(double f32) { return std::stod(fmt::format("{}", static_cast<float>(f32))); }

Json item(const gguf::Value& array, size_t i) {
  if (!array.us.empty()) return array.element == gguf::ValueType::Bool ? Json(array.us[i] != 0) : Json(array.us[i]);
  if (!array.is.empty()) return array.is[i];
  if (!array.fs.empty()) return array.element == gguf::ValueType::F32 ? shortest(array.fs[i]) : array.fs[i];
  return printable(array.ss[i], kShownCharacters);
}

Json value_json(const gguf::Value& value) {
  switch (value.type) {
    case gguf::ValueType::String: return printable(value.s, kShownCharacters);
    case gguf::ValueType::Bool: return value.u != 0;
    case gguf::ValueType::U8:
    case gguf::ValueType::U16:
    case gguf::ValueType::U32:
    case gguf::ValueType::U64: return value.u;
    case gguf::ValueType::I8:
    case gguf::ValueType::I16:
    case gguf::ValueType::I32:
    case gguf::ValueType::I64: return value.i;
    case gguf::ValueType::F32: return shortest(value.f);
    case gguf::ValueType::F64: return value.f;
    case gguf::ValueType::Array: break;
  }
  const size_t count = value.array_size();
  Json items = Json::array();
  for (size_t i = 0; i < (count > kWholeArray ? kShownItems : count); ++i) items.push_back(item(value, i));
  if (count <= kWholeArray) return items;
  return {{"count", count}, {"of", gguf::to_string(value.element)}, {"first", items}};
}

Json metadata_json(const gguf::File& file) {
  Json list = Json::object();
  // Keys are unique already: the vector below an ordered object is filled without a search for each.
  Json::object_t::Container& entries = list.get_ref<Json::object_t&>();
  for (const auto& [key, value] : file.metadata()) entries.emplace_back(printable(key, 1000), value_json(value));
  return list;
}

Json types_json(const gguf::File& file) {
  std::map<DType, std::pair<uint64_t, uint64_t>> sums;  // tensors, bytes
  for (const gguf::TensorInfo& tensor : file.tensors()) {
    auto& [count, bytes] = sums[tensor.type];
    ++count;
    bytes += tensor.bytes;
  }
  std::vector<std::pair<DType, std::pair<uint64_t, uint64_t>>> order(sums.begin(), sums.end());
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.second.second > b.second.second; });
  Json list = Json::array();
  const double all = static_cast<double>(std::max<uint64_t>(1, file.data_bytes()));
  for (const auto& [type, sum] : order)
    list.push_back({{"type", to_string(type)},
                    {"tensors", sum.first},
                    {"bytes", sum.second},
                    {"share", static_cast<double>(sum.second) / all}});
  return list;
}

Json tensors_json(const gguf::File& file) {
  Json list = Json::array();
  for (const gguf::TensorInfo& tensor : file.tensors())
    list.push_back({{"name", printable(tensor.name)},
                    {"type", to_string(tensor.type)},
                    {"shape", std::vector<uint64_t>(tensor.ne, tensor.ne + tensor.dims)},
                    {"bytes", tensor.bytes},
                    {"shard", tensor.shard}});
  return list;
}

Json file_json(const gguf::File& file) {
  uint64_t elements = 0;
  std::vector<uint64_t> per_shard;
  for (const gguf::TensorInfo& tensor : file.tensors()) {
    elements += tensor.elements();
    if (per_shard.size() <= tensor.shard) per_shard.resize(tensor.shard + 1);
    per_shard[tensor.shard] += tensor.bytes;
  }
  Json result = {{"path", printable(file.path(), 1000)},
                 {"bytes", file.file_bytes()},
                 {"tensors", file.tensors().size()},
                 {"parameters", elements},
                 {"weight_bytes", file.data_bytes()},
                 {"bits_per_weight",
                  elements == 0 ? 0.0 : 8.0 * static_cast<double>(file.data_bytes()) / static_cast<double>(elements)}};
  if (file.find("split.count") != nullptr) result["shards"] = per_shard;
  return result;
}

// Null when the file has none. A tokenizer that this build cannot use has an `error`.
Json tokenizer_json(const gguf::File& file) {
  if (!has_tokenizer(file)) return nullptr;
  Json result = Json::object();
  try {
    const text::Vocabulary vocabulary = read_vocabulary(file);
    result = {{"model", printable(vocabulary.model)},
              {"pre", printable(vocabulary.pre)},
              {"tokens", vocabulary.tokens.size()},
              {"merges", vocabulary.merges.size()}};
    auto add = [&](const char* name, const std::optional<uint64_t>& id) {
      if (id) result[name] = {{"id", *id}, {"text", printable(vocabulary.tokens[*id])}};
    };
    add("bos", vocabulary.bos), add("eos", vocabulary.eos), add("eot", vocabulary.eot), add("pad", vocabulary.pad);
    text::Tokenizer check(vocabulary);
  } catch (const Error& error) {
    result["error"] = error.what();
  }
  return result;
}

Json template_json(const gguf::File& file) {
  const gguf::Value* found = file.find("tokenizer.chat_template");
  if (found == nullptr || found->type != gguf::ValueType::String) return nullptr;
  Json result = {{"bytes", found->s.size()}};
  if (const Json capabilities = chat_template_capabilities(found->s); !capabilities.is_null())
    result["capabilities"] = capabilities;
  return result;
}

std::string mixer_text(const ModelSpec& spec, const LayerSpec& layer) {
  auto n = [](int value) { return std::to_string(value); };
  if (layer.mixer == MixerKind::GatedDelta) {
    const DeltaSpec& d = spec.delta;
    return "delta net, " + n(d.key_heads) + " key and " + n(d.value_heads) + " value heads of " + n(d.dk) +
           (d.dv == d.dk ? "" : " x " + n(d.dv)) + ", convolution " + n(d.conv_width);
  }
  const AttentionSpec& a = layer.attention;
  std::string text = layer.indexer.ratio > 0 ? "block-selected attention, "
                     : a.gated               ? "gated attention, "
                                             : "attention, ";
  text += n(a.heads) + " heads of " + n(a.head_dim) + ", " + n(a.kv_heads) + " for keys and values";
  const IndexerSpec& index = layer.indexer;
  if (index.ratio > 0)
    text += ", index " + n(index.heads) + " x " + n(index.dim) + ", " + n(index.budget) + " tokens in blocks of " +
            n(index.ratio);
  return text;
}

std::string mlp_text(const ModelSpec& spec, const LayerSpec& layer) {
  if (layer.mlp == MlpKind::Dense) return "dense " + std::to_string(layer.inner);
  const ExpertsSpec& e = spec.experts;
  std::string text =
      std::to_string(e.used) + " of " + std::to_string(e.count) + " experts of " + std::to_string(e.inner);
  return e.shared_inner == 0 ? text : text + ", shared " + std::to_string(e.shared_inner);
}

Json layers_json(const ModelSpec& spec) {
  Json list = Json::array();
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    const LayerSpec& layer = spec.layers[i];
    Json one = {{"layer", i}, {"mixer", mixer_text(spec, layer)}, {"mlp", mlp_text(spec, layer)}};
    if (layer.ngram >= 0) one["ngram"] = true;
    if (static_cast<int>(i) >= spec.trunk_layers()) one["mtp"] = true;
    list.push_back(std::move(one));
  }
  return list;
}

// Powers of two up to the trained context, and that itself.
Json memory_json(const ModelSpec& spec, uint64_t weights, const CacheOptions& caches) {
  std::string types(to_string(caches.keys));
  if (caches.values != caches.keys) types += "/" + std::string(to_string(caches.values));
  std::vector<int64_t> contexts;
  for (int64_t context : {4096, 32768, 131072, 262144, 1048576})
    if (context < spec.context) contexts.push_back(context);
  contexts.push_back(spec.context);
  Json list = Json::array();
  for (int64_t context : contexts) {
    const StateBytes bytes = state_bytes(spec, context, caches);
    list.push_back({{"context", context},
                    {"weights", weights},
                    {"kv", bytes.kv},
                    {"kv_type", types},
                    {"index", bytes.index},
                    {"fixed", bytes.delta + bytes.convolution + bytes.ngram},
                    {"total", weights + bytes.total()}});
  }
  return list;
}

// Loads as a run would: metadata, every tensor's shape, the tokenizer's size.
void add_model(const gguf::File& file, const CacheOptions& caches, Json& report) {
  try {
    const Model model = Model::load(file.path());
    const ModelSpec& spec = model.spec();
    check_cache_types(spec, caches);
    report["runnable"] = true;
    report["model"] = {{"summary", describe(spec)},  {"architecture", spec.arch},
                       {"context", spec.context},    {"vocabulary", spec.vocabulary},
                       {"hidden", spec.hidden},      {"tied_head", model.weights().tied},
                       {"layers", layers_json(spec)}};
    report["memory"] = memory_json(spec, file.data_bytes(), caches);
    const Json tokenizer = report["tokenizer"];  // a copy: report grows, which moves its values
    std::string problem;
    if (tokenizer.contains("error"))
      problem = tokenizer["error"];
    else if (!tokenizer.is_null() && tokenizer["tokens"].get<int64_t>() != spec.vocabulary)
      problem = "the tokenizer has " + std::to_string(tokenizer["tokens"].get<int64_t>()) + " tokens, the embedding " +
                std::to_string(spec.vocabulary) + " rows";
    if (problem.empty()) return;
    report["runnable"] = false;
    report["error"] = problem;
  } catch (const Error& error) {
    report["runnable"] = false;
    report["error"] = printable(error.what(), 1000);
  }
}

}  // namespace

nlohmann::ordered_json chat_template_capabilities(const std::string& source) {
  try {
    const text::ChatTemplate chat(source, "", "");
    const text::ChatCapabilities& can = chat.capabilities();
    Json result = {{"system_role", can.system_role},
                   {"tools", can.tools},
                   {"tool_calls", can.tool_calls},
                   {"thinking", can.thinking},
                   {"thinking_switch", can.thinking_switch}};
    if (can.effort) result["reasoning_effort"] = can.efforts;
    return result;
  } catch (const Error& error) {
    return {{"error", printable(error.what(), 1000)}};
  }
}

nlohmann::ordered_json inspect_report(const gguf::File& file, bool tensors, const CacheOptions& caches) {
  Json report = {{"file", file_json(file)}, {"types", types_json(file)}};
  report["tokenizer"] = tokenizer_json(file);
  report["chat_template"] = template_json(file);
  add_model(file, caches, report);
  report["metadata"] = metadata_json(file);
  if (tensors) report["tensor_list"] = tensors_json(file);
  return report;
}

}  // namespace strata::cli
