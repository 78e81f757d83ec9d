// Any bytes as a chat template, with a small conversation: it renders or is refused with one Error of one line, and
// what it renders is marked soundly. The first byte chooses how much of the rest is JSON variables instead.
#include "text/template.h"

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "text/jinja_json.h"

namespace {

using namespace strata::text;

void require(bool holds) {
  if (!holds) std::abort();
}

constexpr std::string_view kContext =
    R"({"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "q"},
  {"role": "assistant", "content": "a", "tool_calls": [{"function": {"name": "f", "arguments": {"x": [1, 2.5, null]}}}]}],
  "tools": [{"type": "function", "function": {"name": "f"}}], "add_generation_prompt": true, "n": 3, "s": "a,b"})";

void check_marks(const MarkedText& text) {
  uint32_t end = 0;
  for (const DataRange& range : text.data) {
    require(range.begin < range.end && range.end <= text.bytes.size());
    require(&range == text.data.data() || range.begin > end);
    end = range.end;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view source(reinterpret_cast<const char*>(data), size);
  std::string_view variables = kContext;
  if (!source.empty() && static_cast<uint8_t>(source[0]) >= 0xF0) {
    variables = source.substr(1, source.size() / 2);
    source.remove_prefix(variables.size() + 1);
  }
  TemplateLimits limits;
  limits.steps = 100'000;
  limits.seconds = 1;
  limits.output_bytes = limits.string_bytes = size_t{1} << 20;
  limits.memory_bytes = size_t{16} << 20;
  try {
    const jinja::Value context = jinja::parse_json(variables, "variables");
    if (!context.is(jinja::Value::Kind::Map)) return 0;
    check_marks(Template(source, limits).render(context, 0));
  } catch (const strata::Error& error) {
    require(error.kind() == strata::ErrorKind::Model || error.kind() == strata::ErrorKind::Argument);
  }
  return 0;
}
