// String operations with Python's meaning on marked text. Positions are bytes; characters are code points, and a byte
// that belongs to no character counts as one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "text/jinja_limits.h"
#include "text/jinja_value.h"

namespace strata::text::jinja {

bool is_space(char32_t code);                        // str.isspace of Python
size_t space_at(std::string_view text, size_t pos);  // bytes of the white space character at `pos`, 0 for none
size_t char_count(std::string_view text);
size_t char_length(std::string_view text, size_t pos);              // bytes of the character at `pos`
std::vector<uint32_t> char_starts(std::string_view text, Budget&);  // and the end of the text

// As std::string_view::find, in linear time also for long patterns (memmem is two-way search).
size_t find_text(std::string_view text, std::string_view pattern, size_t from = 0);

enum class Side : uint8_t { Left = 1, Right = 2, Both = 3 };
// Without `characters`: white space.
MarkedText strip(const MarkedText& text, std::optional<std::string_view> characters, Side side, Budget&);

// Without a separator: at runs of white space. `most`: splits at most, below 0 without bound.
std::vector<Value> split(const MarkedText& text, std::optional<std::string_view> separator, int64_t most, Budget&);

MarkedText replace(const MarkedText& text, std::string_view old, const MarkedText& fresh, int64_t most, Budget&);

// ASCII letters; others stay as they are.
MarkedText to_upper(MarkedText text);
MarkedText to_lower(MarkedText text);

}  // namespace strata::text::jinja
