// Any bytes as a reply: the events are the same however the bytes are cut, and arguments are at every moment a prefix
// of JSON. The first byte chooses the options, the second how the rest is cut.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "text/json_scanner.h"
#include "text/reply_parser.h"

namespace {

using namespace strata::text;
using Kind = ReplyEvent::Kind;

void require(bool holds) {
  if (!holds) std::abort();
}

constexpr std::string_view kTools = R"([{"type": "function", "function": {"name": "f", "parameters": {"type": "object",
  "properties": {"s": {"type": "string"}, "i": {"type": "integer"}, "m": {"type": ["string", "null"]}, "a": {}}}}}])";

struct Seen {
  std::string reasoning, content, calls;
  std::vector<std::string> arguments;
  bool operator==(const Seen&) const = default;

  void take(const std::vector<ReplyEvent>& events) {
    for (const ReplyEvent& event : events) {
      switch (event.kind) {
        case Kind::Reasoning: reasoning += event.text; break;
        case Kind::Content: content += event.text; break;
        case Kind::CallBegin:
          require(event.call == static_cast<int32_t>(arguments.size()));
          calls += "begin " + event.text + "\n";
          arguments.emplace_back();
          break;
        case Kind::Arguments:
          require(event.call + 1 == static_cast<int32_t>(arguments.size()));
          arguments.back() += event.text;
          break;
        case Kind::CallEnd:
          require(is_json(arguments.back()) && arguments.back().starts_with('{'));
          calls += "end\n";
          break;
        case Kind::CallFailed: calls += event.text + "\n"; break;
      }
    }
  }
};

void check_prefixes(const Seen& seen) {
  for (const std::string& text : seen.arguments) {
    JsonScanner scanner;
    for (const char c : text) require(scanner.push(c) != JsonScanner::Step::Bad);
  }
}

Seen parsed(const ReplyOptions& options, std::string_view text, size_t piece) {
  ReplyParser parser(options);
  Seen seen;
  for (size_t pos = 0; pos < text.size(); pos += piece) seen.take(parser.push(text.substr(pos, piece)));
  seen.take(parser.finish());
  return seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  static const std::vector<ToolSchema> tools = parse_tool_schemas(kTools);
  ReplyOptions options;
  options.starts_in_thinking = (data[0] & 1) != 0;
  options.reasoning = static_cast<ReasoningFormat>((data[0] >> 1) % 3);
  options.parse_calls = (data[0] & 8) == 0;
  options.tools = tools;
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  const Seen whole = parsed(options, text, text.size() + 1);
  check_prefixes(whole);
  require(whole == parsed(options, text, 1));
  require(whole == parsed(options, text, 1 + data[1] % 16));
  return 0;
}
