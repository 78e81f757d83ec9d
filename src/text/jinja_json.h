// JSON to values of the template engine and back.
#pragma once

#include <string>
#include <string_view>

#include "text/jinja_value.h"

namespace strata::text::jinja {

// Key order is kept and all strings, also keys, are marked as data unless `data` is false. Error{Argument} with `where`
// for malformed text and for more than `max_depth` levels.
Value parse_json(std::string_view text, const std::string& where, bool data = true, size_t max_depth = 64);

struct JsonStyle {
  int indent = -1;          // below 0: on one line
  std::string indent_text;  // used instead of `indent` spaces when not empty
  std::string item_separator = ", ", key_separator = ": ";
  bool ascii = false;
  bool sort_keys = false;
};

// As Python's json.dumps; strings keep their marks. Error{Model} for what JSON cannot hold (undefined values, macros).
MarkedText to_json(const Value& value, const JsonStyle& style, Budget* budget = nullptr);

}  // namespace strata::text::jinja
