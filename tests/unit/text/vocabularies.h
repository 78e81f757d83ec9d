// Vocabularies of the tests.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/tokenizer.h"

namespace strata::text {

std::string to_alphabet(std::string_view bytes);  // bytes in the printable alphabet of vocabulary files
std::string utf8_of(char32_t code);

// 256 byte tokens (id = byte), then one token per merge, then `added`. Merges are given as pairs of raw bytes.
using Pair = std::pair<std::string, std::string>;
struct Added {
  std::string text;
  TokenType type;
};
Vocabulary byte_vocabulary(const std::vector<Pair>& merges = {}, const std::vector<Added>& added = {},
                           std::string pre = "qwen2");

Vocabulary qwen2_vocabulary(std::string pre);  // the published 151,643 tokens and three control tokens
Vocabulary file_vocabulary(const std::string& path);
std::string default_model_path();

std::string fixture(const std::string& name);  // contents of tests/fixtures/<name>

}  // namespace strata::text
