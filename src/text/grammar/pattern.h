// Regular expressions of JSON schemas (`pattern`, and the formats) to expressions over the bytes of a JSON string.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "text/grammar/expr.h"

namespace strata::text::grammar {

struct Pattern {
  ExprId expr;        // of the string's contents, without its quotes
  uint64_t min, max;  // characters; max may be kEndless
};
inline constexpr uint64_t kEndless = UINT64_MAX;

// any_char: what stands for the characters before a pattern without ^ and after one without $.
// Error{Argument} with the place in the pattern.
Pattern parse_pattern(Rules& rules, std::string_view pattern, ExprId any_char, const std::string& where);

}  // namespace strata::text::grammar
