#include "text/json_scanner.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>

namespace strata::text {
namespace {

TEST(JsonScanner, AgreesWithAParser) {
  for (const char* text : {"{}",
                           "[]",
                           "1",
                           "-0",
                           "0.5",
                           "1e5",
                           "1E+5",
                           "1e-05",
                           "\"\"",
                           "true",
                           "null",
                           " [1, 2.5, \"a\", null, {\"b\": []}] ",
                           "\"\\u00e9\\n\"",
                           "",
                           " ",
                           "01",
                           "1.",
                           ".5",
                           "1e",
                           "+1",
                           "-",
                           "tru",
                           "truee",
                           "nul",
                           "[1,]",
                           "[,1]",
                           "{\"a\"}",
                           "{\"a\":}",
                           "{\"a\":1,}",
                           "{a:1}",
                           "[1 2]",
                           "\"a",
                           "\"\\x\"",
                           "\"\\u12g4\"",
                           "\"\n\"",
                           "{}{}",
                           "1 2",
                           "]",
                           "}",
                           "[}",
                           "{]",
                           "\xFF",
                           "\"\xFF\"",
                           "\"\xC3\xA9\"",
                           "[[[]]]",
                           "nan",
                           "'a'"}) {
    EXPECT_EQ(is_json(text), nlohmann::json::accept(text)) << text;
  }
}

RC_GTEST_PROP(JsonScanner, AgreesWithAParserOnAnything, ()) {
  static const std::vector<std::string> kParts = {"{", "}", "[", "]", ",",    ":",    "\"a\"", "\"",      "\\", "1",
                                                  "0", ".", "-", "e", "true", "null", " ",     "\\u0041", "b",  "+"};
  const auto picks = *rc::gen::container<std::vector<size_t>>(rc::gen::inRange<size_t>(0, kParts.size()));
  std::string text;
  for (const size_t pick : picks) text += kParts[pick];
  RC_ASSERT(is_json(text) == nlohmann::json::accept(text));
}

TEST(JsonScanner, DepthIsBounded) {
  EXPECT_TRUE(is_json(std::string(200, '[') + std::string(200, ']')));
  EXPECT_FALSE(is_json(std::string(201, '[') + std::string(201, ']')));
}

TEST(JsonScanner, Unescapes) {
  EXPECT_EQ(json_unescaped(R"(a\"\\\/\b\f\n\r\t)"), "a\"\\/\b\f\n\r\t");
  EXPECT_EQ(json_unescaped(R"(\u00e9\u4e2d\ud83d\ude42)"), "\u00E9\u4E2D\U0001F642");
  EXPECT_EQ(json_unescaped(R"(\ud83dx\ude42\ud83d\u0041)"), "\uFFFDx\uFFFD\uFFFDA");
}

RC_GTEST_PROP(JsonScanner, EscapesComeBack, (const std::string& text)) {
  std::string escaped;
  append_json_escaped(escaped, text);
  RC_ASSERT(json_unescaped(escaped) == text);
}

}  // namespace
}  // namespace strata::text
