// Sets of characters (code points).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace strata::text::grammar {

struct CharRange {
  char32_t low, high;  // both included
  bool operator==(const CharRange&) const = default;
};

class CharSet {
 public:
  CharSet() = default;
  CharSet(std::initializer_list<CharRange> ranges) : ranges_(ranges) { normalise(); }
  static CharSet all() { return {{0, 0x10FFFF}}; }

  void add(char32_t low, char32_t high) { ranges_.push_back({low, high}); }
  void add(const CharSet& other) { ranges_.insert(ranges_.end(), other.ranges_.begin(), other.ranges_.end()); }
  void normalise();  // sorted, disjoint, without surrogates; after the last add()
  CharSet complement() const;
  CharSet intersection(const CharSet& other) const;

  const std::vector<CharRange>& ranges() const { return ranges_; }
  bool empty() const { return ranges_.empty(); }

 private:
  std::vector<CharRange> ranges_;
};

void append_utf8(std::string& out, char32_t code);
std::u32string decode_utf8_text(std::string_view text);  // valid UTF-8

// Characters that a JSON string holds as they are, and the one escape that Strata writes for each other one ("" for the
// former).
CharSet json_plain_chars();
std::string json_escape(char32_t code);

// Ranges of bytes that spell the characters of a set in UTF-8, one entry per sequence of ranges.
struct ByteRange {
  uint8_t low, high;
  bool operator==(const ByteRange&) const = default;
  auto operator<=>(const ByteRange&) const = default;
};
std::vector<std::vector<ByteRange>> utf8_sequences(const CharSet& set);  // in increasing order

}  // namespace strata::text::grammar
