// The first bytes make a vocabulary, the rest a text. Vocabularies may be refused; a text never is, and comes back.
#include "text/tokenizer.h"

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "text/stream.h"

namespace {

using namespace strata;
using namespace strata::text;

std::string utf8_of(unsigned code) {
  if (code < 0x80) return {static_cast<char>(code)};
  return {static_cast<char>(0xC0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3F))};
}

void require(bool holds) {
  if (!holds) std::abort();
}

// 256 byte tokens, then tokens and merges read from `bytes`, which is cut off as far as it was used.
Vocabulary vocabulary_from(std::string_view& bytes) {
  Vocabulary v;
  v.model = "gpt2";
  const auto next = [&]() -> unsigned {
    if (bytes.empty()) return 0;
    const auto byte = static_cast<uint8_t>(bytes[0]);
    bytes.remove_prefix(1);
    return byte;
  };
  const auto take = [&](size_t length) {
    const std::string part(bytes.substr(0, length));
    bytes.remove_prefix(part.size());
    return part;
  };
  constexpr const char* kNames[] = {"qwen2", "qwen35", "llama-bpe", "gpt-2", "smollm", "unknown"};
  v.pre = kNames[next() % 6];
  unsigned moved = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool kept = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    v.tokens.push_back(utf8_of(kept ? byte : moved++));
  }
  v.types.assign(256, 1);
  for (unsigned count = next() % 32; count > 0; --count) {
    v.types.push_back(next() % 8);
    v.tokens.push_back(take(next() % 8));
  }
  for (unsigned count = next() % 32; count > 0; --count) v.merges.push_back(take(next() % 8));
  if (next() % 2) v.bos = next() * 2;
  if (next() % 2) v.add_bos = next() % 2;
  return v;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  try {
    const Tokenizer tokenizer(vocabulary_from(rest));
    for (const bool parse_special : {false, true}) {
      const auto ids = tokenizer.encode(rest, {.add_special = false, .parse_special = parse_special});
      require(tokenizer.decode(ids, true) == rest);
    }
    Utf8Stream characters(true);
    StopStrings stops({std::string(rest.substr(0, 3)), std::string(rest.substr(rest.size() / 2, 5))});
    for (const char byte : rest) stops.push(characters.push(std::string_view(&byte, 1)));
    stops.push(characters.finish());
    stops.finish();
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::Model);
  }
  return 0;
}
