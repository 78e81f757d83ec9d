// Character classes (Unicode 14.0) and a UTF-8 decoder in which invalid bytes are characters of no class.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace strata::text {

// Bits, so that a set of classes is one byte. No character has two of them.
enum CharClass : uint8_t {
  kLetter = 1,  // \p{L}
  kNumber = 2,  // \p{N}
  kMark = 4,    // \p{M}
  kSpace = 8,   // White_Space
};

uint8_t classes_of(char32_t code);

enum class Utf8Kind : uint8_t {
  Complete,    // a character
  Incomplete,  // all of `bytes` is the beginning of a character
  Invalid,     // no character begins like this: overlong forms, surrogates, above U+10FFFF, stray bytes
};

struct Utf8Result {
  Utf8Kind kind;
  uint8_t length;  // bytes of the character, of its beginning, or of the longest valid beginning (at least 1)
  char32_t code;   // 0 unless complete
};

Utf8Result decode_utf8(std::string_view bytes);  // the first character; `bytes` is not empty

void append_utf8(std::string& out, char32_t code);  // a character: no surrogate, at most U+10FFFF

struct Char {
  uint8_t classes;  // CharClass bits
  uint8_t length;   // bytes; 1 for an invalid byte
};

Char decode_char(std::string_view bytes);

inline constexpr std::array<uint8_t, 128> kAsciiClasses = [] {
  std::array<uint8_t, 128> table{};
  for (int c = 0; c < 128; ++c) {
    if ((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z')) table[c] = kLetter;
    if (c >= '0' && c <= '9') table[c] = kNumber;
    if ((c >= '\t' && c <= '\r') || c == ' ') table[c] = kSpace;
  }
  return table;
}();

// The character at `pos`, which is inside `text`.
inline Char char_at(std::string_view text, size_t pos) {
  const auto byte = static_cast<uint8_t>(text[pos]);
  if (byte < 0x80) return {kAsciiClasses[byte], 1};
  return decode_char(text.substr(pos, 4));
}

}  // namespace strata::text
