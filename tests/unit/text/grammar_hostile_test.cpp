// Grammars and schemas made to cost time, memory or stack: each ends soon, with an error or a working automaton.
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "text/grammar.h"
#include "unit/text/vocabularies.h"

namespace strata::text {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr double kSlower = 10;
#else
constexpr double kSlower = 1;
#endif

std::string times(const std::string& text, size_t count) {
  std::string all;
  all.reserve(text.size() * count);
  for (size_t i = 0; i < count; ++i) all += text;
  return all;
}

// "" when `work` succeeds. The time of compiling is limited to 2 s; what is beyond it here is parsing and a busy
// machine.
template <class Work>
std::string error_of(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  std::string what;
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Argument);
    what = error.what();
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  EXPECT_LT(seconds, 4 * kSlower) << what;
  EXPECT_LT(what.size(), 600u);
  return what;
}

std::string gbnf(const std::string& text) {
  return error_of([&] { Grammar::from_gbnf(text); });
}
std::string schema(const std::string& text) {
  return error_of([&] { Grammar::from_json_schema(text); });
}
std::string pattern(const std::string& text) {
  return schema(nlohmann::json{{"type", "string"}, {"pattern", text}}.dump());
}

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(GrammarHostile, Nesting) {
  EXPECT_HAS(gbnf("root ::= " + times("(", 60000) + "\"a\"" + times(")", 60000)), "limit of 200");
  EXPECT_HAS(gbnf("root ::= " + times("(", 60000)), "limit of 200");
  EXPECT_EQ(gbnf("root ::= " + times("(", 200) + "\"a\"" + times(")", 200)), "");
  EXPECT_HAS(gbnf("root ::= \"a\"" + times("*", 100000)), "nest deeper");
  EXPECT_HAS(gbnf("root ::= " + times("(", 199) + "\"a\"" + times("*)*?*?*", 199)), "nest deeper");
  EXPECT_HAS(gbnf("root ::= " + times("(", 199) + "\"a\"" + times(")+", 199)), "more than 1000000 symbols");
  EXPECT_HAS(pattern(times("(", 2000) + "a" + times(")", 2000)), "limit of 100");
  EXPECT_EQ(pattern("^" + times("(", 100) + "a" + times(")", 100) + "$"), "");
  EXPECT_HAS(schema(times("[", 500000)), "nests deeper");
  EXPECT_HAS(schema(times(R"({"items":)", 65) + "{}" + times("}", 65)), "limit of 64");
  EXPECT_EQ(schema(times(R"({"items":)", 63) + "{}" + times("}", 63)), "");
  EXPECT_HAS(schema(times(R"({"properties":{"a":)", 65) + "{}" + times("}}", 65)), "limit of 64");
  EXPECT_EQ(schema(times(R"({"properties":{"a":)", 60) + "{}" + times("}}", 60)), "");
  EXPECT_HAS(schema(times(R"({"allOf":[{"type":"object"},)", 65) + "{}" + times("]}", 65)), "limit of 64");
  EXPECT_HAS(schema(R"({"const":)" + times("[", 300) + times("]", 300) + "}"), "nests deeper");
  EXPECT_EQ(schema(R"({"const":)" + times("[", 250) + times("]", 250) + "}"), "");
}

TEST(GrammarHostile, ChainsOfRules) {
  for (const bool forward : {true, false}) {
    std::string text = "root ::= r0\n";
    for (int k = 0; k < 5000; ++k) {
      const int i = forward ? k : 4999 - k;
      text += "r" + std::to_string(i) + " ::= " + (i == 4999 ? "\"a\"" : "r" + std::to_string(i + 1)) + "\n";
    }
    EXPECT_EQ(gbnf(text), "");
    EXPECT_TRUE(Grammar::from_gbnf(text).matches("a"));
    text += "z ::= r4998 r4998\n";
    EXPECT_EQ(gbnf(text), "");
  }
  std::string circle, many, deep = "root ::= r0\n";
  for (int i = 0; i < 5000; ++i)
    circle += "r" + std::to_string(i) + " ::= r" + std::to_string((i + 1) % 5000) + " | \"a\"\n";
  EXPECT_HAS(gbnf("root ::= r0\n" + circle), "left recursion");
  for (int i = 0; i < 10001; ++i) many += "r" + std::to_string(i) + " ::= \"a\"\n";
  EXPECT_HAS(gbnf("root ::= r0\n" + many), "more than 10000 rules");
  // Twice as many ways at each level: fine to compile, and refused where the states would explode.
  for (int i = 0; i < 40; ++i)
    deep +=
        "r" + std::to_string(i) + " ::= r" + std::to_string(i + 1) + " \"x\" | r" + std::to_string(i + 1) + " \"y\"\n";
  deep += "r40 ::= \"a\"\n";
  EXPECT_HAS(error_of([&] { Grammar::from_gbnf(deep).matches("a"); }), "more than 10000 states");
  std::string chain = R"({"$ref":"#/$defs/a0","$defs":{)";
  for (int i = 0; i < 70; ++i)
    chain += "\"a" + std::to_string(i) + R"(":{"$ref":"#/$defs/a)" + std::to_string(i + 1) + "\"},";
  EXPECT_HAS(schema(chain + R"("a70":{}}})"), "limit of 64");
}

TEST(GrammarHostile, Sizes) {
  EXPECT_HAS(gbnf("root ::= \"" + times("a", 1 << 20) + "\""), "limit is 1048576");
  EXPECT_EQ(gbnf("root ::= \"" + times("a", 900000) + "\""), "");
  EXPECT_HAS(gbnf("root ::= \"a\"{2000}{2000}"), "limit of 2000");
  EXPECT_HAS(gbnf("root ::= (\"" + times("a", 1000) + "\"){2000}"), "more than 1000000 symbols");
  EXPECT_EQ(gbnf("root ::= " + times("\"a\" | ", 140000) + "\"b\""), "");
  EXPECT_EQ(gbnf("root ::= " + times("[a-z] ", 100000)), "");
  EXPECT_HAS(error_of([] { Grammar::from_gbnf("root ::= " + times("[a-z] | ", 100000) + "\"b\"").matches("a"); }),
             "states");
  EXPECT_HAS(schema("{\"title\":\"" + times("a", 1 << 20) + "\"}"), "limit is 1048576");
  EXPECT_HAS(pattern(times("a", 4097)), "limit is 4096");
  EXPECT_EQ(pattern(times("[^a]", 1000)), "");
  EXPECT_HAS(pattern("(a{2000}){2000}"), "limit of 2000");
  std::string members, numbers;
  for (int i = 0; i < 60000; ++i) members += "\"k" + std::to_string(i) + "\":{},";
  EXPECT_HAS(schema("{\"properties\":{" + members + "\"z\":{}}}"), "too many members");
  for (int i = 0; i < 100000; ++i) numbers += "\"v" + std::to_string(i) + "\",";
  EXPECT_EQ(schema("{\"enum\":[" + numbers + "0]}"), "");
  EXPECT_TRUE(Grammar::from_json_schema("{\"enum\":[" + numbers + "0]}").matches("\"v99999\""));
  std::string optional;
  for (int i = 0; i < 4000; ++i)
    optional += (i == 0 ? "\"k" : ",\"k") + std::to_string(i) + "\":{\"type\":\"integer\"}";
  const std::string wide = "{\"type\":\"object\",\"properties\":{" + optional + "},\"additionalProperties\":false}";
  EXPECT_EQ(schema(wide), "");
  EXPECT_TRUE(Grammar::from_json_schema(wide).matches(R"({"k7":1,"k3999":2})"));
  // A rule that doubles itself at each of many levels is not written out.
  std::string doubling = "root ::= r0\n";
  for (int i = 0; i < 60; ++i)
    doubling += "r" + std::to_string(i) + " ::= (r" + std::to_string(i + 1) + " r" + std::to_string(i + 1) + ")*\n";
  EXPECT_EQ(gbnf(doubling + "r60 ::= \"0123456789\"\n"), "");
}

TEST(GrammarHostile, CompileTime) {
  const GrammarLimits none{.compile_seconds = 0};
  EXPECT_HAS(error_of([&] { Grammar::from_gbnf("root ::= " + times("[a-z] ", 1000), none); }),
             "takes longer to compile");
}

// The vocabulary has nothing that the grammar wants.
TEST(GrammarHostile, NoTokenIsPossible) {
  Vocabulary ascii = byte_vocabulary();
  ascii.types.assign(ascii.tokens.size(), 1);
  for (size_t byte = 0x80; byte < 256; ++byte) ascii.types[byte] = 5;
  const TokenTrie trie{Tokenizer(ascii)};
  GrammarState state(Grammar::from_gbnf("root ::= \"é\""), trie);
  TokenMask mask;
  state.allowed_tokens(mask);
  EXPECT_FALSE(mask.any());
  EXPECT_FALSE(state.dead());
}

// Masks of ambiguous grammars end, with or without an error.
TEST(GrammarHostile, AmbiguousMasks) {
  static const Tokenizer tokenizer(qwen2_vocabulary("qwen2"));
  static const TokenTrie trie(tokenizer);
  for (const std::string text :
       {"root ::= (.{0,40} .{0,40}){0,40}", "root ::= (.* .* .*)* \"x\"", "root ::= ((.?){0,40}){0,40}",
        "root ::= (\"a\"* | \"aa\"*){0,2000} \"b\"", "root ::= . root . | .", "root ::= . root root | .",
        "root ::= (.{1,2} | .{1,3} | .{2,5}){0,300}"}) {
    const std::string what = error_of([&] {
      GrammarState state(Grammar::from_gbnf(text), trie);
      TokenMask mask;
      for (int i = 0; i < 3; ++i) {
        state.allowed_tokens(mask);
        state.accept("aaa");
      }
    });
    EXPECT_TRUE(what.empty() || what.find("too ambiguous") != std::string::npos) << what;
  }
}

TEST(GrammarHostile, DeepTextsOfRecursiveGrammars) {
  EXPECT_EQ(error_of([] {
              const std::string deep = times("[", 200000) + times("]", 200000);
              EXPECT_TRUE(Grammar::from_json_schema("{}").matches(deep));
            }),
            "");
}

}  // namespace
}  // namespace strata::text
