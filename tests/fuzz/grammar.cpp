// A GBNF grammar, a zero byte, a text. Grammars may be refused; masks of one that is not agree with what it accepts.
#include "text/grammar.h"

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"

namespace {

using namespace strata;
using namespace strata::text;

void require(bool holds) {
  if (!holds) std::abort();
}

std::string utf8_of(unsigned code) {
  if (code < 0x80) return {static_cast<char>(code)};
  return {static_cast<char>(0xC0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3F))};
}

// 256 byte tokens, some longer ones, a named one and an end.
const TokenTrie& trie() {
  static const TokenTrie built = [] {
    Vocabulary v;
    v.model = "gpt2";
    v.pre = "qwen2";
    unsigned moved = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const bool kept = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
      v.tokens.push_back(utf8_of(kept ? byte : moved++));
    }
    v.types.assign(256, 1);
    for (const char* text : {"ab", "aa", "aaaa", "\"a", "\":", "{\"", "12", "]}", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}) {
      v.types.push_back(1);
      v.tokens.push_back(text);
    }
    for (const char* text : {"<a>", "<|im_end|>"}) {
      v.types.push_back(text[1] == 'a' ? 4 : 3);
      v.tokens.push_back(text);
    }
    return TokenTrie(Tokenizer(std::move(v)));
  }();
  return built;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t cut = input.find('\0');
  const std::string_view text = cut == std::string_view::npos ? std::string_view() : input.substr(cut + 1);
  try {
    const Grammar grammar = Grammar::from_gbnf(input.substr(0, cut));
    GrammarState state(grammar, trie());
    TokenMask mask;
    std::string accepted;
    for (size_t i = 0; i < text.size() && i < 32; ++i) {
      state.allowed_tokens(mask);
      for (int32_t id = 0; id < trie().vocabulary() - 1; ++id) {
        GrammarState copy = state;
        require(mask.test(id) == copy.accept(id));
      }
      require(mask.test(trie().vocabulary() - 1) == state.accepting());
      if (!state.accept(text.substr(i, 1))) break;
      accepted += text[i];
      require(grammar.matches(accepted) == state.accepting());
    }
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::Argument);
  }
  return 0;
}
