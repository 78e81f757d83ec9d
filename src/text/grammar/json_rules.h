// JSON as rules: whitespace, strings, numbers, any value. Each is made when it is first asked for.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "text/grammar/expr.h"

namespace strata::text::grammar {

class JsonRules {
 public:
  explicit JsonRules(Rules& rules) : rules_(rules) {}

  // Nothing, a space, or one or two newlines and up to 32 blanks: what compact and indented JSON has behind brackets
  // and commas and before closing brackets. More freedom makes small models write blanks for ever.
  ExprId space();
  ExprId character();  // of a string; an escaped surrogate pair is one
  ExprId string();
  ExprId string(uint32_t min, uint32_t max);  // lengths in characters; max may be kUnbounded
  ExprId number();
  ExprId integer();
  ExprId boolean();
  ExprId null() { return rules_.literal("null"); }
  ExprId value();
  ExprId object();
  ExprId array();

  ExprId comma();  // and space
  ExprId colon();  // and perhaps one blank
  // "[" items "]": `items` may be left out when `optional`.
  ExprId enclosed(const char* open, ExprId items, bool optional, const char* close);
  ExprId list_of(ExprId item, uint32_t min, uint32_t max);  // in brackets

 private:
  template <class Make>
  ExprId rule(const char* name, const Make& make);

  Rules& rules_;
  std::map<std::string, uint32_t, std::less<>> known_;
  std::optional<ExprId> character_;
};

// Decimal numbers without leading zeros between two of them, signs allowed; nullopt: no bound, up to 20 digits.
ExprId integer_range(Rules& rules, std::optional<int64_t> low, std::optional<int64_t> high);

// A pattern for date, time, date-time or uuid; nullptr for other names.
const char* format_pattern(std::string_view format);

}  // namespace strata::text::grammar
