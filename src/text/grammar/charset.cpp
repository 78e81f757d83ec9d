#include "text/grammar/charset.h"

#include <algorithm>

#include "text/unicode.h"

namespace strata::text::grammar {

void CharSet::normalise() {
  std::vector<CharRange> sorted;
  for (const CharRange range : ranges_) {  // surrogates have no UTF-8 form
    if (range.low <= 0xD7FF) sorted.push_back({range.low, std::min<char32_t>(range.high, 0xD7FF)});
    if (range.high >= 0xE000) sorted.push_back({std::max<char32_t>(range.low, 0xE000), range.high});
  }
  std::erase_if(sorted, [](CharRange range) { return range.low > range.high; });
  std::sort(sorted.begin(), sorted.end(), [](CharRange a, CharRange b) { return a.low < b.low; });
  ranges_.clear();
  for (const CharRange range : sorted) {
    if (!ranges_.empty() && range.low <= ranges_.back().high + 1) {
      ranges_.back().high = std::max(ranges_.back().high, range.high);
    } else {
      ranges_.push_back(range);
    }
  }
}

CharSet CharSet::complement() const {
  CharSet result;
  char32_t next = 0;
  for (const CharRange range : ranges_) {
    if (range.low > next) result.add(next, range.low - 1);
    next = range.high + 1;
  }
  if (next <= 0x10FFFF) result.add(next, 0x10FFFF);
  result.normalise();
  return result;
}

CharSet CharSet::intersection(const CharSet& other) const {
  CharSet outside = complement();
  outside.add(other.complement());
  outside.normalise();
  return outside.complement();
}

void append_utf8(std::string& out, char32_t code) {
  const auto put = [&](char32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) return put(code);
  if (code < 0x800) return put(0xC0 | (code >> 6)), put(0x80 | (code & 0x3F));
  if (code < 0x10000) {
    put(0xE0 | (code >> 12));
  } else {
    put(0xF0 | (code >> 18)), put(0x80 | ((code >> 12) & 0x3F));
  }
  put(0x80 | ((code >> 6) & 0x3F)), put(0x80 | (code & 0x3F));
}

std::u32string decode_utf8_text(std::string_view text) {
  std::u32string codes;
  while (!text.empty()) {
    const Utf8Result result = decode_utf8(text.substr(0, 4));
    codes += result.code;
    text.remove_prefix(result.length);
  }
  return codes;
}

CharSet json_plain_chars() { return CharSet{{0, 0x1F}, {'"', '"'}, {'\\', '\\'}}.complement(); }

std::string json_escape(char32_t code) {
  constexpr std::string_view kShort = "\"\"\\\\\bb\ff\nn\rr\tt";  // pairs
  for (size_t i = 0; i < kShort.size(); i += 2) {
    if (code == static_cast<char32_t>(kShort[i])) return std::string("\\") + kShort[i + 1];
  }
  if (code >= 0x20) return {};
  constexpr std::string_view kHex = "0123456789abcdef";
  return std::string("\\u00") + kHex[code >> 4] + kHex[code & 15];
}

namespace {

// low and high have the same length in UTF-8. Cuts the range until each byte runs over its range on its own.
void split(char32_t low, char32_t high, std::vector<std::vector<ByteRange>>& out) {
  std::string first, last;
  append_utf8(first, low), append_utf8(last, high);
  for (size_t tail = 1; tail < first.size(); ++tail) {
    const char32_t mask = (char32_t{1} << (6 * tail)) - 1;
    if ((low & ~mask) == (high & ~mask)) break;  // they differ only in the bytes behind
    if ((low & mask) != 0) return split(low, low | mask, out), split((low | mask) + 1, high, out);
    if ((high & mask) != mask) return split(low, (high & ~mask) - 1, out), split(high & ~mask, high, out);
  }
  std::vector<ByteRange>& sequence = out.emplace_back();
  for (size_t i = 0; i < first.size(); ++i) {
    sequence.push_back({static_cast<uint8_t>(first[i]), static_cast<uint8_t>(last[i])});
  }
}

}  // namespace

std::vector<std::vector<ByteRange>> utf8_sequences(const CharSet& set) {
  constexpr char32_t kLast[] = {0x7F, 0x7FF, 0xFFFF, 0x10FFFF};  // of each length
  std::vector<std::vector<ByteRange>> sequences;
  for (const CharRange range : set.ranges()) {
    char32_t low = range.low;
    for (const char32_t last : kLast) {
      if (low > last || low > range.high) continue;
      split(low, std::min(range.high, last), sequences);
      low = last + 1;
    }
  }
  return sequences;
}

}  // namespace strata::text::grammar
