#include "text/unicode.h"

#include <algorithm>

namespace strata::text {

namespace {

// One number per range, in increasing order: its first code point * 16 + its classes.
constexpr uint32_t kRanges[] = {
#include "text/unicode_table.inc"
};

struct Lead {
  uint8_t length;     // 0: no character begins with this byte
  uint8_t low, high;  // bounds of the second byte; they exclude overlong forms, surrogates and values above U+10FFFF
};

constexpr Lead lead_of(uint8_t byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

}  // namespace

uint8_t classes_of(char32_t code) {
  if (code < 0x80) return kAsciiClasses[code];
  if (code > 0x10FFFF) return 0;
  const auto after = std::upper_bound(std::begin(kRanges), std::end(kRanges), (static_cast<uint32_t>(code) << 4) | 15);
  return after[-1] & 15;
}

Utf8Result decode_utf8(std::string_view bytes) {
  const auto first = static_cast<uint8_t>(bytes[0]);
  const Lead lead = lead_of(first);
  if (lead.length == 0) return {Utf8Kind::Invalid, 1, 0};
  if (lead.length == 1) return {Utf8Kind::Complete, 1, first};
  char32_t code = first & (0x7F >> lead.length);
  for (uint8_t i = 1; i < lead.length; ++i) {
    if (i == bytes.size()) return {Utf8Kind::Incomplete, i, 0};
    const auto byte = static_cast<uint8_t>(bytes[i]);
    const uint8_t low = i == 1 ? lead.low : 0x80;
    const uint8_t high = i == 1 ? lead.high : 0xBF;
    if (byte < low || byte > high) return {Utf8Kind::Invalid, i, 0};
    code = (code << 6) | (byte & 0x3F);
  }
  return {Utf8Kind::Complete, lead.length, code};
}

Char decode_char(std::string_view bytes) {
  const Utf8Result result = decode_utf8(bytes);
  if (result.kind != Utf8Kind::Complete) return {0, 1};
  return {classes_of(result.code), result.length};
}

void append_utf8(std::string& out, char32_t code) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | ((code >> shift) & 0x3F)); };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | (code >> 6));
    tail(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | (code >> 12));
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xF0 | (code >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

}  // namespace strata::text
