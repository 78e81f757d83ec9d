#include "text/jinja_text.h"

#include <algorithm>
#include <cstring>

#include "text/unicode.h"

namespace strata::text::jinja {

bool is_space(char32_t code) {
  // Python adds the four separators of ASCII to White_Space.
  return (code >= 0x1C && code <= 0x1F) ||
         (code < 0x80 ? (kAsciiClasses[code] & kSpace) : classes_of(code) & kSpace) != 0;
}

size_t space_at(std::string_view text, size_t pos) {
  const Utf8Result c = decode_utf8(text.substr(pos, 4));
  return c.kind == Utf8Kind::Complete && is_space(c.code) ? c.length : 0;
}

size_t find_text(std::string_view text, std::string_view pattern, size_t from) {
  constexpr size_t kShort = 32;  // bytes that may be compared at each place
  if (pattern.size() <= kShort || from > text.size()) return text.find(pattern, from);
  const void* found = ::memmem(text.data() + from, text.size() - from, pattern.data(), pattern.size());
  return found == nullptr ? std::string_view::npos : static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

size_t char_length(std::string_view text, size_t pos) { return char_at(text, pos).length; }

size_t char_count(std::string_view text) {
  size_t count = 0;
  for (size_t pos = 0; pos < text.size(); pos += char_length(text, pos)) ++count;
  return count;
}

std::vector<uint32_t> char_starts(std::string_view text, Budget& budget) {
  budget.step(text.size() / 16);
  std::vector<uint32_t> starts;
  for (size_t pos = 0; pos < text.size(); pos += char_length(text, pos)) starts.push_back(static_cast<uint32_t>(pos));
  starts.push_back(static_cast<uint32_t>(text.size()));
  return starts;
}

namespace {

constexpr size_t kMaxStripCharacters = 1024;

class Stripper {
 public:
  explicit Stripper(std::optional<std::string_view> characters) : spaces_(!characters) {
    if (spaces_) return;
    if (characters->size() > kMaxStripCharacters) fail("strip with more than 1024 characters is not supported");
    for (size_t pos = 0; pos < characters->size(); pos += char_length(*characters, pos)) {
      set_.push_back(characters->substr(pos, char_length(*characters, pos)));
    }
  }
  bool strips(std::string_view character) const {
    return spaces_ ? space_at(character, 0) == character.size()
                   : std::find(set_.begin(), set_.end(), character) != set_.end();
  }

 private:
  bool spaces_;
  std::vector<std::string_view> set_;
};

// Start of the character that ends at `end`.
size_t last_char(std::string_view text, size_t end) {
  for (size_t length = 4; length > 1; --length) {
    if (end >= length && char_length(text, end - length) == length) return end - length;
  }
  return end - 1;
}

}  // namespace

MarkedText strip(const MarkedText& text, std::optional<std::string_view> characters, Side side, Budget& budget) {
  budget.moved(text.bytes.size());
  const Stripper stripper(characters);
  const std::string_view bytes = text.bytes;
  size_t begin = 0, end = bytes.size();
  if (side != Side::Right) {
    while (begin < end && stripper.strips(bytes.substr(begin, char_length(bytes, begin)))) {
      begin += char_length(bytes, begin);
    }
  }
  if (side != Side::Left) {
    while (begin < end) {
      const size_t start = last_char(bytes, end);
      if (!stripper.strips(bytes.substr(start, end - start))) break;
      end = start;
    }
  }
  return text.part(begin, end - begin);
}

namespace {

std::vector<Value> split_at_spaces(const MarkedText& text, int64_t most, Budget& budget) {
  std::vector<Value> parts;
  const std::string_view bytes = text.bytes;
  size_t pos = 0;
  const auto skip_spaces = [&] {
    while (pos < bytes.size()) {
      const size_t space = space_at(bytes, pos);
      if (space == 0) break;
      pos += space;
    }
  };
  for (skip_spaces(); pos < bytes.size(); skip_spaces()) {
    size_t end = pos;
    if (most >= 0 && parts.size() >= static_cast<size_t>(most)) {
      parts.push_back(Value::string(text.part(pos, bytes.size() - pos), &budget));
      break;
    }
    while (end < bytes.size() && space_at(bytes, end) == 0) end += char_length(bytes, end);
    budget.step();
    parts.push_back(Value::string(text.part(pos, end - pos), &budget));
    pos = end;
  }
  return parts;
}

}  // namespace

std::vector<Value> split(const MarkedText& text, std::optional<std::string_view> separator, int64_t most,
                         Budget& budget) {
  budget.step(text.bytes.size() / 16);
  if (!separator) return split_at_spaces(text, most, budget);
  if (separator->empty()) fail("split: empty separator");
  std::vector<Value> parts;
  size_t pos = 0;
  while (most < 0 || parts.size() < static_cast<size_t>(most)) {
    const size_t found = find_text(text.bytes, *separator, pos);
    if (found == std::string::npos) break;
    budget.step();
    parts.push_back(Value::string(text.part(pos, found - pos), &budget));
    pos = found + separator->size();
  }
  parts.push_back(Value::string(text.part(pos, text.bytes.size() - pos), &budget));
  return parts;
}

MarkedText replace(const MarkedText& text, std::string_view old, const MarkedText& fresh, int64_t most,
                   Budget& budget) {
  budget.step(text.bytes.size() / 16);
  MarkedText result;
  size_t pos = 0;
  const auto room_for = [&](size_t bytes) {
    budget.step(1 + bytes / 64);
    budget.string(result.bytes.size() + bytes);
  };
  for (int64_t done = 0; most < 0 || done < most; ++done) {
    // An empty pattern is found before every character and at the end.
    size_t found = pos;
    if (!old.empty()) {
      found = find_text(text.bytes, old, pos);
    } else if (done > 0) {
      found = pos >= text.bytes.size() ? std::string::npos : pos + char_length(text.bytes, pos);
    }
    if (found == std::string::npos) break;
    room_for(found - pos + fresh.bytes.size());
    result.append(text, pos, found - pos);
    result.append(fresh);
    pos = found + old.size();
  }
  room_for(text.bytes.size() - pos);
  result.append(text, pos, text.bytes.size() - pos);
  return result;
}

MarkedText to_upper(MarkedText text) {
  for (char& c : text.bytes)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return text;
}

MarkedText to_lower(MarkedText text) {
  for (char& c : text.bytes)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

}  // namespace strata::text::jinja
