#include "text/reply_parser.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "text/json_scanner.h"
#include "unit/text/reply_corpus.h"

namespace strata::text {
namespace {

using Kind = ReplyEvent::Kind;
using Events = std::vector<ReplyEvent>;

ReplyOptions options(bool in_thinking = false, ReasoningFormat format = ReasoningFormat::Separate) {
  ReplyOptions o;
  o.starts_in_thinking = in_thinking;
  o.reasoning = format;
  o.tools = parse_tool_schemas(kReplyTools);
  return o;
}

// Neighbouring deltas joined. In the format Both, thoughts and content run side by side: one after the other then.
Events joined(const Events& events, bool side_by_side) {
  Events all;
  for (const ReplyEvent& event : events) {
    const bool delta = event.kind == Kind::Reasoning || event.kind == Kind::Content || event.kind == Kind::Arguments;
    auto same = all.end();
    if (delta && side_by_side && event.kind != Kind::Arguments) {
      same = std::find_if(all.begin(), all.end(), [&](const ReplyEvent& e) { return e.kind == event.kind; });
    } else if (delta && !all.empty() && all.back().kind == event.kind && all.back().call == event.call) {
      same = all.end() - 1;
    }
    if (same != all.end()) {
      same->text += event.text;
    } else {
      all.push_back(event);
    }
  }
  return all;
}

Events events_of(const std::vector<std::string>& pieces, const ReplyOptions& o) {
  ReplyParser parser(o);
  Events events;
  const auto take = [&](Events more) { events.insert(events.end(), more.begin(), more.end()); };
  for (const std::string& piece : pieces) take(parser.push(piece));
  take(parser.finish());
  return joined(events, o.reasoning == ReasoningFormat::Both);
}

ParsedReply parse(const std::string& text, bool in_thinking = false,
                  ReasoningFormat format = ReasoningFormat::Separate) {
  return parse_reply(text, options(in_thinking, format));
}

std::string xml_call(const std::string& body) {
  return "<tool_call>\n<function=weather>\n" + body + "</function>\n</tool_call>";
}

std::string arguments_of(const std::string& body) {
  const ParsedReply reply = parse(xml_call(body));
  return reply.calls.size() == 1 ? reply.calls[0].arguments : "no single call";
}

TEST(ReplyParser, Thinking) {
  ParsedReply r = parse("<think>\nwhy\n</think>\n\nanswer\n");
  EXPECT_EQ(r.reasoning, "why");
  EXPECT_EQ(r.content, "answer\n");
  r = parse("why\n</think>\n\nanswer", true);
  EXPECT_EQ(r.reasoning, "why");
  EXPECT_EQ(r.content, "answer");
  r = parse("<think>why</think>answer", true);  // some models open them again
  EXPECT_EQ(r.reasoning, "why");
  r = parse("a <think>b</think>");  // only at the beginning
  EXPECT_EQ(r.reasoning, "");
  EXPECT_EQ(r.content, "a <think>b</think>");
  r = parse("<think>\n\n</think>\n\nx");
  EXPECT_EQ(r.reasoning, "");
  EXPECT_EQ(r.content, "x");
}

TEST(ReplyParser, AReplyThatEndsInThoughtsSaysSo) {
  ParsedReply r = parse("still thinking </thi", true);
  EXPECT_TRUE(r.ended_in_thinking);
  EXPECT_EQ(r.reasoning, "still thinking </thi");
  EXPECT_EQ(r.content, "");
  EXPECT_TRUE(parse("", true).ended_in_thinking);
  EXPECT_FALSE(parse("").ended_in_thinking);
  EXPECT_FALSE(parse("a</think>", true).ended_in_thinking);
}

TEST(ReplyParser, ACallEndsThinking) {
  const ParsedReply r = parse("need it\n" + xml_call("<parameter=city>\nOslo\n</parameter>\n"), true);
  EXPECT_EQ(r.reasoning, "need it");
  EXPECT_EQ(r.content, "");
  EXPECT_EQ(r.calls, (std::vector<ParsedCall>{{"weather", R"({"city": "Oslo"})"}}));
}

TEST(ReplyParser, ReasoningFormats) {
  const std::string text = "<think>\nwhy\n</think>\n\nanswer";
  EXPECT_EQ(parse(text, false, ReasoningFormat::None).content, text);
  EXPECT_EQ(parse(text, false, ReasoningFormat::None).reasoning, "");
  EXPECT_EQ(parse(text, false, ReasoningFormat::Both).reasoning, "why");
  EXPECT_EQ(parse(text, false, ReasoningFormat::Both).content, "<think>\nwhy\n</think>answer");
  const std::string call = "<think>a" + xml_call("");
  EXPECT_EQ(parse(call, false, ReasoningFormat::Both).content, "<think>a");
  EXPECT_EQ(parse(call, false, ReasoningFormat::None).content, "<think>a");
  EXPECT_EQ(parse(call, false, ReasoningFormat::None).calls.size(), 1u);
}

TEST(ReplyParser, CallsAreTextWhereTheRequestHasNone) {
  ReplyOptions o = options();
  o.parse_calls = false;
  const std::string call = xml_call("<parameter=city>\nOslo\n</parameter>\n");
  const ParsedReply r = parse_reply(call, o);
  EXPECT_EQ(r.content, call);
  EXPECT_TRUE(r.calls.empty());
}

TEST(ReplyParser, XmlCalls) {
  const std::string oslo = "<parameter=city>\nOslo\n</parameter>\n";
  const ParsedReply r = parse("I look.\n\n" + xml_call(oslo) + "\n" + xml_call("") + "\nDone.");
  EXPECT_EQ(r.content, "I look.Done.");
  EXPECT_EQ(r.calls, (std::vector<ParsedCall>{{"weather", R"({"city": "Oslo"})"}, {"weather", "{}"}}));
  EXPECT_TRUE(r.failures.empty());
}

TEST(ReplyParser, ArgumentTextMayHoldAnything) {
  EXPECT_EQ(arguments_of("<parameter=city>\na\n\n b</parameter> </function>\n</tool_call>\n\n</parameter>\n"),
            R"({"city": "a\n\n b</parameter> </function>\n</tool_call>\n"})");
  EXPECT_EQ(arguments_of("<parameter=city>\n\n</parameter>\n"), R"({"city": ""})");
  EXPECT_EQ(arguments_of("<parameter=city>\n</parameter>\n"), R"({"city": ""})");
  EXPECT_EQ(arguments_of("<parameter=city>inline</parameter>\n"), R"({"city": "inline"})");
  EXPECT_EQ(arguments_of("<parameter=city>\n\"\\\t\x01/\n</parameter>\n"), R"({"city": "\"\\\t\u0001/"})");
  EXPECT_EQ(arguments_of("<parameter=city>\n\xFF\xE2\x82\n</parameter>\n"), "{\"city\": \"\uFFFD\uFFFD\"}");
}

TEST(ReplyParser, TypesComeFromTheSchema) {
  const auto value = [](const std::string& name, const std::string& text) {
    const std::string json = arguments_of("<parameter=" + name + ">\n" + text + "\n</parameter>\n");
    const std::string head = "{\"" + name + "\": ";
    return json.starts_with(head) ? json.substr(head.size(), json.size() - head.size() - 1) : json;
  };
  EXPECT_EQ(value("city", "5"), "\"5\"");  // only string: verbatim
  EXPECT_EQ(value("city", "null"), "\"null\"");
  EXPECT_EQ(value("days", " 5 "), "5");
  EXPECT_EQ(value("days", "five"), "\"five\"");  // no JSON: the client decides
  EXPECT_EQ(value("exact", "true"), "true");
  EXPECT_EQ(value("exact", "True"), "true");  // as templates print booleans
  EXPECT_EQ(value("tags", "[1, 2]"), "[1, 2]");
  EXPECT_EQ(value("tags", "[1, 2"), "\"[1, 2\"");
  EXPECT_EQ(value("note", "null"), "null");
  EXPECT_EQ(value("note", "None"), "\"None\"");
  EXPECT_EQ(value("note", "12"), "\"12\"");  // JSON, but not of an allowed type
  EXPECT_EQ(value("note", "\"q\""), "\"q\"");
  EXPECT_EQ(value("extra", "{\"a\": 1.50}"), "{\"a\": 1.50}");
  EXPECT_EQ(value("extra", "word"), "\"word\"");
  EXPECT_EQ(value("unknown", "5"), "5");
  EXPECT_EQ(value("mode", "1"), "1");
  EXPECT_EQ(value("mode", "true"), "\"true\"");
}

TEST(ReplyParser, MalformedParametersAreDropped) {
  const std::string good = "<parameter=city>\nOslo\n</parameter>\n";
  for (const std::string& bad :
       {std::string("<parameter=\nx\n</parameter>\n"), std::string("<parameter=tags: [1, 2]\n</parameter>\n"),
        std::string("<parameter=note=\nx\n</parameter>\n"), std::string("<parameter=>\nx\n"), std::string("junk\n"),
        "<parameter=" + std::string(300, 'x') + ">\ny\n</parameter>\n"}) {
    EXPECT_EQ(arguments_of(bad + good), R"({"city": "Oslo"})") << bad;
    EXPECT_EQ(arguments_of(good + bad), R"({"city": "Oslo"})") << bad;
  }
}

TEST(ReplyParser, ACallWithoutItsOpeningTag) {
  const std::string body = "<function=weather>\n<parameter=city>\nOslo\n</parameter>\n</function>";
  for (const char* tail : {"", "\n</tool_call>", "\n</tool_c"}) {
    const ParsedReply r = parse("ok\n" + body + tail);
    EXPECT_EQ(r.calls.size(), 1u) << tail;
    EXPECT_EQ(r.content, "ok") << tail;
  }
  const std::string unknown = "<function=other>\n</function>";
  EXPECT_EQ(parse(unknown).content, unknown);
  EXPECT_EQ(parse("the <function=weather and <function> tags").content, "the <function=weather and <function> tags");
}

TEST(ReplyParser, UnknownFunctionsAreKept) {
  const ParsedReply r =
      parse("<tool_call>\n<function=other>\n<parameter=x>\n[1]\n</parameter>\n</function>\n</tool_call>");
  EXPECT_EQ(r.calls, (std::vector<ParsedCall>{{"other", R"({"x": [1]})"}}));
}

TEST(ReplyParser, JsonCalls) {
  const auto call = [](const std::string& object) { return parse("<tool_call>\n" + object + "\n</tool_call>"); };
  EXPECT_EQ(call(R"({"name": "f", "arguments": {"a": [1, "}"], "b": {}}})").calls,
            (std::vector<ParsedCall>{{"f", R"({"a": [1, "}"], "b": {}})"}}));
  EXPECT_EQ(call(R"({"arguments": {"a": 1}, "id": [1], "name": "f\u00e9"})").calls,
            (std::vector<ParsedCall>{{"f\u00E9", R"({"a": 1})"}}));
  EXPECT_EQ(call(R"({"name": "f"})").calls, (std::vector<ParsedCall>{{"f", "{}"}}));
  EXPECT_EQ(call(R"({"name": "f", "arguments": "{\"a\": \"\\u0041\"}"})").calls,
            (std::vector<ParsedCall>{{"f", R"({"a": "\u0041"})"}}));
  EXPECT_EQ(call(R"({"name": "f", "arguments": {"tag": "</tool_call>"}})").calls,
            (std::vector<ParsedCall>{{"f", R"({"tag": "</tool_call>"})"}}));
}

TEST(ReplyParser, MalformedJsonCallsBecomeContent) {
  for (const char* object :
       {R"({"name": 1, "arguments": {}})", R"({"arguments": {}})", R"({"name": "f", "arguments": 1})",
        R"({"name": "f", "arguments": "x"})", R"({"name": "f", "name": "g"})", R"({"name": ""})",
        R"({"name": "f", "arguments": {"a": 1})", R"({"name": "f", "arguments": {"a": "x}}
)",
        R"({name: "f"})", "{<", "{</tool_call"}) {
    const std::string raw = "<tool_call>" + std::string(object) + "</tool_call>";
    const ParsedReply r = parse("a " + raw + " b<tool_call>{\"name\": \"stop\"}</tool_call>");
    EXPECT_EQ(r.content, "a" + raw + " b") << object;
    EXPECT_EQ(r.failures, std::vector<std::string>{"malformed tool call"}) << object;
    EXPECT_EQ(r.calls, (std::vector<ParsedCall>{{"stop", "{}"}})) << object;
  }
}

TEST(ReplyParser, UnfinishedCallsAreReported) {
  for (const std::string& raw : {std::string("<tool_call>"), std::string("<tool_call>\n<func"),
                                 std::string("<tool_call>\n<function=weather>\n<parameter=city>\nOs"),
                                 std::string("<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"ci"),
                                 std::string("<function=weather>\n")}) {
    const ParsedReply r = parse("a\n" + raw);
    EXPECT_EQ(r.content, "a" + raw);
    EXPECT_EQ(r.failures, std::vector<std::string>{"unfinished tool call"}) << raw;
    EXPECT_TRUE(r.calls.empty());
  }
}

TEST(ReplyParser, EventsOfACall) {
  const Events events = events_of({"x" + xml_call("<parameter=city>\nOslo\n</parameter>\n")}, options());
  EXPECT_EQ(events, (Events{{Kind::Content, -1, "x"},
                            {Kind::CallBegin, 0, "weather"},
                            {Kind::Arguments, 0, R"({"city": "Oslo"})"},
                            {Kind::CallEnd, 0, ""}}));
}

TEST(ReplyParser, ContentIsReleasedAtOnce) {
  ReplyParser parser(options());
  const auto content = [&](std::string_view bytes) {
    std::string text;
    for (const ReplyEvent& event : parser.push(bytes)) text += event.text;
    return text;
  };
  EXPECT_EQ(content("ab"), "ab");
  EXPECT_EQ(content(" "), "");
  EXPECT_EQ(content("c<"), " c");
  EXPECT_EQ(content("tool"), "");
  EXPECT_EQ(content("s"), "<tools");
  EXPECT_TRUE(parser.in_content());
  EXPECT_EQ(content("<tool_call>\n<function=weather>\n<parameter=city>\n"), "weather{\"city\": \"");
  EXPECT_FALSE(parser.in_content());
  EXPECT_EQ(content("Os\n</par"), "Os");
  EXPECT_EQ(content("is"), "\\n</paris");
}

// The whole corpus in every format, cut in two at every place and into single bytes.
TEST(ReplyParser, CutsDoNotMatter) {
  size_t checked = 0;
  for (const std::string& text : reply_corpus()) {
    for (const bool in_thinking : {false, true}) {
      for (const auto format : {ReasoningFormat::Separate, ReasoningFormat::None, ReasoningFormat::Both}) {
        const ReplyOptions o = options(in_thinking, format);
        const Events whole = events_of({text}, o);
        for (size_t i = 1; i < text.size(); ++i) {
          ASSERT_EQ(events_of({text.substr(0, i), text.substr(i)}, o), whole) << text << " cut at " << i;
        }
        std::vector<std::string> bytes;
        for (const char c : text) bytes.emplace_back(1, c);
        ASSERT_EQ(events_of(bytes, o), whole) << text;
        ++checked;
      }
    }
  }
  EXPECT_GE(checked, 40u * 6);
}

bool is_json_prefix(const std::string& text) {
  JsonScanner scanner;
  return std::all_of(text.begin(), text.end(), [&](char c) { return scanner.push(c) != JsonScanner::Step::Bad; });
}

// What must hold of every reply, whatever it says.
void check_invariants(const std::string& text, const ReplyOptions& o) {
  ReplyParser parser(o);
  std::vector<std::string> arguments;
  std::vector<char> closed;
  const auto look = [&](const Events& events) {
    for (const ReplyEvent& event : events) {
      if (event.kind == Kind::CallBegin) {
        ASSERT_EQ(event.call, static_cast<int32_t>(arguments.size()));
        arguments.emplace_back();
        closed.push_back(0);
      } else if (event.kind == Kind::Arguments) {
        ASSERT_EQ(event.call + 1, static_cast<int32_t>(arguments.size()));
        arguments.back() += event.text;
        ASSERT_TRUE(is_json_prefix(arguments.back())) << arguments.back();
      } else if (event.kind == Kind::CallEnd) {
        ASSERT_TRUE(nlohmann::json::parse(arguments.back()).is_object()) << arguments.back();
        closed.back() = 1;
      }
    }
  };
  for (const char c : text) look(parser.push(std::string_view(&c, 1)));
  look(parser.finish());
  EXPECT_EQ(std::count(closed.begin(), closed.end(), 1), parser.calls());
}

TEST(ReplyParser, ArgumentsAreAlwaysAPrefixOfJson) {
  for (const std::string& text : reply_corpus()) check_invariants(text, options());
}

RC_GTEST_PROP(ReplyParser, AnyTextAnyCut, ()) {
  static const std::vector<std::string> kParts = {"<think>",
                                                  "</think>",
                                                  "<tool_call>",
                                                  "</tool_call>",
                                                  "<function=weather>",
                                                  "<function=x>",
                                                  "</function>",
                                                  "<parameter=city>",
                                                  "<parameter=days>",
                                                  "<parameter=",
                                                  "</parameter>",
                                                  "\n",
                                                  "\n\n",
                                                  " ",
                                                  "{",
                                                  "}",
                                                  "\"name\": \"stop\"",
                                                  "\"arguments\": {",
                                                  "\"",
                                                  ",",
                                                  "[",
                                                  "]",
                                                  ":",
                                                  "1",
                                                  "text",
                                                  "\\",
                                                  "\xF0\x9F",
                                                  "\x99\x82",
                                                  "<",
                                                  ">",
                                                  "=",
                                                  "\\u00",
                                                  "null"};
  const auto picks = *rc::gen::container<std::vector<size_t>>(rc::gen::inRange<size_t>(0, kParts.size()));
  const bool in_thinking = *rc::gen::arbitrary<bool>();
  const auto format = *rc::gen::element(ReasoningFormat::Separate, ReasoningFormat::None, ReasoningFormat::Both);
  const ReplyOptions o = options(in_thinking, format);
  std::string text;
  for (const size_t pick : picks) text += kParts[pick];
  const auto cuts = *rc::gen::container<std::vector<size_t>>(rc::gen::inRange<size_t>(0, 12));
  std::vector<std::string> pieces;
  size_t pos = 0;
  for (const size_t length : cuts) {
    pieces.push_back(text.substr(std::min(pos, text.size()), length));
    pos += length;
  }
  if (pos < text.size()) pieces.push_back(text.substr(pos));
  RC_ASSERT(events_of(pieces, o) == events_of({text}, o));
  check_invariants(text, o);
}

TEST(ReplyParser, LongRepliesTakeLinearTime) {
  const auto started = std::chrono::steady_clock::now();
  const size_t size = size_t{1} << 20;
  std::string spaces(size, '\n');
  std::string tags, calls;
  while (tags.size() < size) tags += "<tool_cal";
  while (calls.size() < size) calls += "</tool_call><tool_call>{\"a\":\"";
  for (const std::string& text : {spaces + "x", "<think>" + spaces, tags, "<tool_call>" + spaces + "x", calls,
                                  "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"" + spaces,
                                  xml_call("<parameter=city>\n" + spaces + "\n</parameter>\n")}) {
    parse(text);
  }
  // About 0.3 s with sanitizers; a quadratic parser would take minutes.
  EXPECT_LT(std::chrono::steady_clock::now() - started, std::chrono::seconds(30));
}

TEST(ToolSchemas, AreRead) {
  const auto tools = parse_tool_schemas(R"([{"function": {"name": "f", "parameters": {"properties": {
    "a": {"type": "string"}, "b": {"anyOf": [{"type": "integer"}, {"type": "null"}]}, "c": {"const": true},
    "d": {"allOf": [{"type": ["string", "number"]}, {"enum": ["x"]}]}, "e": {"$ref": "#/x"}, "f": true,
    "g": {"type": "string", "enum": [1]}}}}}])");
  ASSERT_EQ(tools.size(), 1u);
  EXPECT_EQ(tools[0].kinds_of("a"), kJsonString);
  EXPECT_EQ(tools[0].kinds_of("b"), kJsonNumber | kJsonNull);
  EXPECT_EQ(tools[0].kinds_of("c"), kJsonBool);
  EXPECT_EQ(tools[0].kinds_of("d"), kJsonString);
  EXPECT_EQ(tools[0].kinds_of("e"), kJsonAny);
  EXPECT_EQ(tools[0].kinds_of("f"), kJsonAny);
  EXPECT_EQ(tools[0].kinds_of("g"), kJsonAny);
  EXPECT_TRUE(parse_tool_schemas("").empty());
  EXPECT_TRUE(parse_tool_schemas("null").empty());
  for (const char* bad : {"{}", "[1]", "[{}]", R"([{"function": {}}])", R"([{"function": {"name": 1}}])", "["}) {
    EXPECT_THROW(parse_tool_schemas(bad), Error) << bad;
  }
}

}  // namespace
}  // namespace strata::text
