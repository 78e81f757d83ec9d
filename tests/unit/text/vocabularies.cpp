#include "unit/text/vocabularies.h"

#include "base/mapped_file.h"
#include "gguf/gguf.h"

namespace strata::text {

namespace {

constexpr size_t kFixtureLimit = 64 << 20;

bool is_printable(int byte) { return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174; }

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t pos = 0; pos < text.size();) {
    const size_t end = text.find('\n', pos);
    lines.push_back(text.substr(pos, end - pos));
    pos = end + 1;
  }
  return lines;
}

}  // namespace

std::string utf8_of(char32_t code) {
  std::string out;
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | ((code >> shift) & 0x3F)); };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | (code >> 6));
    tail(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | (code >> 12));
    tail(6), tail(0);
  } else {
    out += static_cast<char>(0xF0 | (code >> 18));
    tail(12), tail(6), tail(0);
  }
  return out;
}

std::string to_alphabet(std::string_view bytes) {
  static const std::vector<std::string> letters = [] {
    std::vector<std::string> list;
    char32_t moved = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
      list.push_back(utf8_of(is_printable(byte) ? static_cast<char32_t>(byte) : moved++));
    }
    return list;
  }();
  std::string text;
  for (const char c : bytes) text += letters[static_cast<uint8_t>(c)];
  return text;
}

Vocabulary byte_vocabulary(const std::vector<Pair>& merges, const std::vector<Added>& added, std::string pre) {
  Vocabulary v;
  v.model = "gpt2";
  v.pre = std::move(pre);
  for (int byte = 0; byte < 256; ++byte) v.tokens.push_back(to_alphabet(std::string(1, static_cast<char>(byte))));
  for (const auto& [left, right] : merges) {
    v.tokens.push_back(to_alphabet(left + right));
    v.merges.push_back(to_alphabet(left) + " " + to_alphabet(right));
  }
  v.types.assign(v.tokens.size(), 1);
  for (const Added& token : added) {
    v.tokens.push_back(token.text);
    v.types.push_back(static_cast<int64_t>(token.type));
  }
  return v;
}

Vocabulary qwen2_vocabulary(std::string pre) {
  Vocabulary v;
  v.model = "gpt2";
  v.pre = std::move(pre);
  for (const bool printable : {true, false}) {
    for (int byte = 0; byte < 256; ++byte) {
      if (is_printable(byte) == printable) v.tokens.push_back(to_alphabet(std::string(1, static_cast<char>(byte))));
    }
  }
  v.merges = lines_of(read_file(STRATA_BINARY_DIR "/fixtures/tokenizer/qwen2-merges.txt", kFixtureLimit));
  for (const std::string& merge : v.merges) {
    const size_t space = merge.find(' ');
    v.tokens.push_back(merge.substr(0, space) + merge.substr(space + 1));
  }
  v.types.assign(v.tokens.size(), 1);
  for (const char* text : {"<|endoftext|>", "<|im_start|>", "<|im_end|>"}) {
    v.tokens.push_back(text);
    v.types.push_back(3);
  }
  v.eos = v.tokens.size() - 3;
  return v;
}

Vocabulary file_vocabulary(const std::string& path) {
  const auto file = gguf::File::open(path);
  const auto id = [&](const char* key) { return file.get_uint(key, 0, UINT32_MAX); };
  Vocabulary v;
  v.model = file.get_string("tokenizer.ggml.model").value_or("");
  v.pre = file.get_string("tokenizer.ggml.pre").value_or("");
  if (const auto* tokens = file.get_strings("tokenizer.ggml.tokens")) v.tokens = *tokens;
  if (const auto* merges = file.get_strings("tokenizer.ggml.merges")) v.merges = *merges;
  v.types = file.get_ints("tokenizer.ggml.token_type", 0, 255).value_or(std::vector<int64_t>{});
  v.bos = id("tokenizer.ggml.bos_token_id");
  v.eos = id("tokenizer.ggml.eos_token_id");
  v.eot = id("tokenizer.ggml.eot_token_id");
  v.eom = id("tokenizer.ggml.eom_token_id");
  v.pad = id("tokenizer.ggml.padding_token_id");
  v.add_bos = file.get_bool("tokenizer.ggml.add_bos_token");
  return v;
}

std::string default_model_path() { return STRATA_SOURCE_DIR "/models/strata-mini-q8_0.gguf"; }

std::string fixture(const std::string& name) {
  return read_file(STRATA_SOURCE_DIR "/tests/fixtures/" + name, kFixtureLimit);
}

}  // namespace strata::text
