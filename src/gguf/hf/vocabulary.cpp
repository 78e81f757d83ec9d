#include "gguf/hf/vocabulary.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/mapped_file.h"
#include "gguf/hf/json_text.h"

namespace strata::gguf::hf {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr size_t kMaxTokenizer = 256u << 20;
constexpr size_t kMaxTemplate = 4u << 20;

enum TokenType : int64_t { kNormal = 1, kControl = 3, kUserDefined = 4, kUnused = 5 };

Json parse(const std::string& path, size_t limit) {
  Json json = Json::parse(read_json_text(path, limit), nullptr, false);
  if (!json.is_object()) throw Error(ErrorKind::Format, "is not a JSON object", path);
  return json;
}

const Json& member(const Json& object, const char* name) {
  static const Json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(name);
  return found == object.end() ? kNull : *found;
}

std::string text(const Json& value) { return value.is_string() ? value.get<std::string>() : ""; }
bool is_true(const Json& value) { return value.is_boolean() && value.get<bool>(); }

// The pre-tokenizer's nodes, a Sequence unpacked.
std::vector<Json> pre_nodes(const Json& tokenizer) {
  const Json& root = member(tokenizer, "pre_tokenizer");
  const Json& list = member(root, "pretokenizers");
  if (list.is_array()) return list.get<std::vector<Json>>();
  return {root};
}

// tokenizer.ggml.pre, told by the pattern itself and not by the model's name. Empty when it is none that is known.
std::string pre_tokenizer_name(const Json& tokenizer) {
  bool byte_level = false, byte_level_splits = false, digits = false;
  std::string pattern;
  for (const Json& node : pre_nodes(tokenizer)) {
    const std::string type = text(member(node, "type"));
    if (type == "ByteLevel") {
      byte_level = true;
      byte_level_splits = !member(node, "use_regex").is_boolean() || is_true(member(node, "use_regex"));
    } else if (type == "Digits") {
      digits = is_true(member(node, "individual_digits"));
    } else if (type == "Split" && pattern.empty()) {
      pattern = text(member(member(node, "pattern"), "Regex"));
    } else {
      return "";
    }
  }
  if (!byte_level) return "";
  if (pattern.empty()) return !byte_level_splits ? "" : digits ? "smollm" : "gpt-2";
  static const std::string kContractions = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|";
  static const std::string kSpaces = "[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
  static const std::string kWords = "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|";
  static const std::string kRest = "| ?[^\\s\\p{L}\\p{N}]+" + kSpaces;
  if (pattern == kContractions + kWords + "\\p{N}" + kRest) return "qwen2";
  if (pattern == kContractions + kWords + "\\p{N}{1,3}" + kRest) return "llama-bpe";
  if (pattern == kContractions + "[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+" + kSpaces)
    return "qwen35";
  return "";
}

class Vocabulary {
 public:
  Vocabulary(std::string path, uint64_t size) : path_(std::move(path)), tokens_(size), types_(size, 0) {}

  void read(const Json& tokenizer) {
    const Json& vocab = member(member(tokenizer, "model"), "vocab");
    if (!vocab.is_object()) fail("has no model.vocab");
    for (const auto& [token, id] : vocab.items()) set(id, token, kNormal);
    for (const Json& added : member(tokenizer, "added_tokens")) {
      const std::string content = text(member(added, "content"));
      const bool control = is_true(member(added, "special")) || (content.starts_with("<|") && content.ends_with("|>"));
      set(member(added, "id"), content, control ? kControl : kUserDefined);
    }
    for (size_t id = 0; id < tokens_.size(); ++id) {
      if (types_[id] != 0) continue;
      tokens_[id] = "[PAD" + std::to_string(id) + "]";
      types_[id] = kUnused;
    }
    read_merges(member(member(tokenizer, "model"), "merges"));
  }

  std::optional<uint64_t> id_of(const std::string& token) const {
    const auto found = std::find(tokens_.begin(), tokens_.end(), token);
    if (token.empty() || found == tokens_.end()) return std::nullopt;
    return static_cast<uint64_t>(found - tokens_.begin());
  }
  uint64_t size() const { return tokens_.size(); }

  void write(std::vector<KeyValue>& keys) {
    keys.push_back({"tokenizer.ggml.tokens", Value::of_strings(std::move(tokens_))});
    keys.push_back({"tokenizer.ggml.token_type", Value::of_i32s(std::move(types_))});
    keys.push_back({"tokenizer.ggml.merges", Value::of_strings(std::move(merges_))});
  }

 private:
  [[noreturn]] void fail(const std::string& message) const { throw Error(ErrorKind::Model, message, path_); }

  void set(const Json& id, const std::string& token, TokenType type) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= tokens_.size())
      fail("gives a token an id that is not below vocab_size (" + std::to_string(tokens_.size()) + ")");
    const uint64_t at = id.get<uint64_t>();
    if (types_[at] != 0 && tokens_[at] != token) fail("gives id " + std::to_string(at) + " to two tokens");
    tokens_[at] = token;
    types_[at] = type;
  }

  void read_merges(const Json& merges) {
    if (!merges.is_array()) fail("has no model.merges");
    for (const Json& merge : merges) {
      std::string line = text(merge);
      if (merge.is_array() && merge.size() == 2) line = text(merge[0]) + " " + text(merge[1]);
      // Tokens of the byte alphabet hold no spaces, so exactly one separates the two.
      if (std::count(line.begin(), line.end(), ' ') != 1 || line.front() == ' ' || line.back() == ' ')
        fail("has a merge that is not two tokens");
      merges_.push_back(std::move(line));
    }
  }

  std::string path_;
  std::vector<std::string> tokens_;
  std::vector<int64_t> types_;  // 0: no token yet
  std::vector<std::string> merges_;
};

// A special token of tokenizer_config.json, by text, else the id of config.json.
std::optional<uint64_t> special_id(const Vocabulary& vocabulary, const Json& stated, std::optional<uint64_t> fallback) {
  const auto id = vocabulary.id_of(text(stated.is_object() ? member(stated, "content") : stated));
  const auto chosen = id ? id : fallback;
  return chosen && *chosen < vocabulary.size() ? chosen : std::nullopt;
}

// A post-processor whose template begins with a special token puts BOS in front.
bool template_adds_bos(const Json& post) {
  if (text(member(post, "type")) == "Sequence") {
    for (const Json& part : member(post, "processors"))
      if (template_adds_bos(part)) return true;
    return false;
  }
  const Json& single = member(post, "single");
  return single.is_array() && !single.empty() && member(single.front(), "SpecialToken").is_object();
}

void add_templates(const std::string& directory, const Json& config, std::vector<KeyValue>& keys) {
  const fs::path file = fs::path(directory) / "chat_template.jinja";
  const Json& stated = member(config, "chat_template");
  std::error_code ignored;
  if (fs::exists(file, ignored)) {
    keys.push_back({"tokenizer.chat_template", Value::of_string(read_file(file.string(), kMaxTemplate))});
  } else if (stated.is_string()) {
    keys.push_back({"tokenizer.chat_template", Value::of_string(stated.get<std::string>())});
  } else if (stated.is_array()) {
    for (const Json& named : stated) {
      const std::string name = text(member(named, "name")), body = text(member(named, "template"));
      if (name.empty() || name.size() > 64) continue;
      keys.push_back(
          {name == "default" ? "tokenizer.chat_template" : "tokenizer.chat_template." + name, Value::of_string(body)});
    }
  }
}

void add_special_ids(const Vocabulary& vocabulary, const Config& c, const Json& settings, const Json& tokenizer,
                     const std::string& pre, std::vector<KeyValue>& keys) {
  const auto first_eos = c.eos.empty() ? std::nullopt : std::optional(c.eos.front());
  const auto bos = special_id(vocabulary, member(settings, "bos_token"), c.bos);
  auto add = [&](const char* key, std::optional<uint64_t> id) {
    if (id) keys.push_back({std::string("tokenizer.ggml.") + key, Value::of_u32(static_cast<uint32_t>(*id))});
  };
  add("bos_token_id", bos);
  add("eos_token_id", special_id(vocabulary, member(settings, "eos_token"), first_eos));
  add("padding_token_id", special_id(vocabulary, member(settings, "pad_token"), c.pad));
  const Json& stated = member(settings, "add_bos_token");
  const bool add_bos =
      stated.is_boolean() ? stated.get<bool>() : template_adds_bos(member(tokenizer, "post_processor"));
  const bool qwen = pre == "qwen2" || pre == "qwen35";
  keys.push_back({"tokenizer.ggml.add_bos_token", Value::of_bool(add_bos && bos.has_value() && !qwen)});
}

}  // namespace

std::vector<KeyValue> read_vocabulary(const std::string& directory, const Config& config, const Warn& warn) {
  const std::string path = (fs::path(directory) / "tokenizer.json").string();
  const std::string settings_path = (fs::path(directory) / "tokenizer_config.json").string();
  static const std::string kIdsOnly = ": the file has no vocabulary, generation works with token ids only";
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    warn("no tokenizer.json in " + directory + kIdsOnly);
    return {};
  }
  const Json tokenizer = parse(path, kMaxTokenizer);
  const Json& model = member(tokenizer, "model");
  const std::string pre = pre_tokenizer_name(tokenizer);
  if (text(member(model, "type")) != "BPE" || is_true(member(model, "byte_fallback")) || pre.empty()) {
    warn(path + " is not byte-level BPE with a pre-tokenizer that Strata has" + kIdsOnly);
    return {};
  }
  if (is_true(member(model, "ignore_merges")) && pre != "llama-bpe")
    warn(path + " sets ignore_merges, which the pre-tokenizer " + pre +
         " does not have: rare words may split differently");

  Vocabulary vocabulary(path, config.vocab);
  vocabulary.read(tokenizer);
  const Json settings = fs::exists(settings_path, ignored) ? parse(settings_path, kMaxTokenizer) : Json::object();
  std::vector<KeyValue> keys{{"tokenizer.ggml.model", Value::of_string("gpt2")},
                             {"tokenizer.ggml.pre", Value::of_string(pre)}};
  add_special_ids(vocabulary, config, settings, tokenizer, pre, keys);
  vocabulary.write(keys);
  add_templates(directory, settings, keys);
  return keys;
}

}  // namespace strata::gguf::hf
