#include "runtime/vocabulary.h"

#include "base/error.h"

namespace strata {
namespace {

constexpr const char* kPrefix = "tokenizer.ggml.";

// Byte-level BPE has no use for scores; a file whose scores are broken is broken.
void check_scores(const gguf::File& file, size_t tokens) {
  const std::string key = std::string(kPrefix) + "scores";
  const auto scores = file.get_reals(key);
  if (scores && scores->size() != tokens)
    throw Error(ErrorKind::Model,
                key + ": " + std::to_string(scores->size()) + " scores for " + std::to_string(tokens) + " tokens",
                file.path());
}

}  // namespace

bool has_tokenizer(const gguf::File& file) { return file.find("tokenizer.ggml.model") != nullptr; }

text::Vocabulary read_vocabulary(const gguf::File& file) {
  const std::string prefix = kPrefix;
  const auto model = file.get_string(prefix + "model");
  const std::vector<std::string>* tokens = file.get_strings(prefix + "tokens");
  if (!model || tokens == nullptr)
    throw Error(ErrorKind::Model,
                "the file has no tokenizer (tokenizer.ggml.model and .tokens): give token ids instead of text",
                file.path());
  if (tokens->empty()) throw Error(ErrorKind::Model, prefix + "tokens is empty", file.path());
  check_scores(file, tokens->size());
  text::Vocabulary vocabulary;
  vocabulary.model = *model;
  vocabulary.pre = file.get_string(prefix + "pre").value_or("");
  vocabulary.tokens = *tokens;
  vocabulary.types = file.get_ints(prefix + "token_type", 0, 255).value_or(std::vector<int64_t>{});
  if (const auto* merges = file.get_strings(prefix + "merges")) vocabulary.merges = *merges;
  auto id = [&](const char* name) { return file.get_uint(prefix + name, 0, tokens->size() - 1); };
  vocabulary.bos = id("bos_token_id");
  vocabulary.eos = id("eos_token_id");
  vocabulary.eot = id("eot_token_id");
  vocabulary.eom = id("eom_token_id");
  vocabulary.pad = id("padding_token_id");
  vocabulary.add_bos = file.get_bool(prefix + "add_bos_token");
  return vocabulary;
}

text::Tokenizer read_tokenizer(const gguf::File& file) {
  text::Vocabulary vocabulary = read_vocabulary(file);
  try {
    return text::Tokenizer(std::move(vocabulary));
  } catch (const Error& error) {  // which names the key
    throw Error(error.kind(), error.what(), file.path());
  }
}

}  // namespace strata
