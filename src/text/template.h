// A bounded Jinja engine for chat templates (docs/templates.md). It renders as Hugging Face does: trim_blocks and
// lstrip_blocks, one newline at the end of the source dropped, no HTML escaping, tojson as Python's json.dumps.
// Nothing outside the given values can be reached, and time and memory are bounded whatever the template does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "text/jinja_value.h"

namespace strata::text {

// Exceeding one is an Error{Model} that names it.
struct TemplateLimits {
  size_t source_bytes = size_t{1} << 20;
  size_t output_bytes = size_t{16} << 20;
  uint64_t steps = 10'000'000;  // expressions and statements evaluated, and 64 bytes or one item moved
  size_t nesting = 200;         // of blocks, of expressions, of values
  size_t recursion = 200;       // of macros
  size_t range_items = 100'000;
  size_t string_bytes = size_t{16} << 20;   // of any one string
  size_t memory_bytes = size_t{256} << 20;  // of all values alive
  double seconds = 5;
};

// The text with the parts that come from the request marked: Tokenizer::encode takes both.
using RenderResult = MarkedText;

class Template {
 public:
  // Error{Model} naming the construct that is wrong or not supported, and its line.
  explicit Template(std::string_view source, const TemplateLimits& limits = {});
  ~Template();
  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;

  // `context` is a mapping: the variables. Error{Argument} with the message of raise_exception, else Error{Model};
  // both with the line. `now`, seconds since 1970, is what strftime_now shows (local time); default: the clock.
  RenderResult render(const jinja::Value& context, std::optional<int64_t> now = std::nullopt) const;

  bool mentions(std::string_view name) const;  // the template reads a variable of this name

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace strata::text
