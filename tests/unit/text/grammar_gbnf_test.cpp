// GBNF grammars against texts, and the errors of the parser.
#include <gtest/gtest.h>

#include "base/error.h"
#include "text/grammar.h"

namespace strata::text {
namespace {

struct Case {
  std::string grammar;
  std::vector<std::string> accepted, refused;
};

void check(const std::vector<Case>& cases) {
  for (const Case& one : cases) {
    SCOPED_TRACE(one.grammar);
    const Grammar grammar = Grammar::from_gbnf(one.grammar);
    for (const std::string& text : one.accepted) EXPECT_TRUE(grammar.matches(text)) << "'" << text << "'";
    for (const std::string& text : one.refused) EXPECT_FALSE(grammar.matches(text)) << "'" << text << "'";
  }
}

std::string error_of(const std::string& text) {
  try {
    Grammar::from_gbnf(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Argument);
    return error.what();
  }
  return "";
}

void expect_errors(const std::vector<std::pair<std::string, std::string>>& cases) {
  for (const auto& [text, part] : cases)
    EXPECT_NE(error_of(text).find(part), std::string::npos) << text << "\n" << error_of(text);
}

TEST(Gbnf, LiteralsAndAlternatives) {
  check({
      {R"(root ::= "abc")", {"abc"}, {"", "ab", "abcd", "abd"}},
      {R"(root ::= "")", {""}, {"a"}},
      {R"(root ::= )", {""}, {"a"}},
      {R"(root ::= "a" | "b" | )", {"a", "b", ""}, {"ab", "c"}},
      {R"(root ::= "ab" | "abc" | "b")", {"ab", "abc", "b"}, {"a", "abcb", "bb"}},
      {R"(root ::= "a" ("b" | "c" "d") "e")", {"abe", "acde"}, {"ace", "abde", "ae"}},
      {R"(root ::= "\x41\u00e9\U0001F600\n\t\r\"\\\[\]")", {"Aé😀\n\t\r\"\\[]"}, {"A"}},
      {R"(root ::= "日本")", {"日本"}, {"日", "日木"}},
      {"root ::= a b\na ::= \"x\" # comment | \"y\"\n# whole line\nb ::= \"z\"", {"xz"}, {"yz", "x"}},
      {"root ::= \"a\"\n  | \"b\"\n  \"c\"\n", {"a", "bc"}, {"b", "ac"}},
      {"root ::= (\n \"a\" |\n \"b\"\n)\nx ::= \"y\"", {"a", "b"}, {"y"}},
      {"root::=a_1-B\r\na_1-B::=\"q\"\r\n", {"q"}, {"a_1-B"}},
  });
}

TEST(Gbnf, Classes) {
  check({
      {"root ::= [a-c]", {"a", "b", "c"}, {"d", "", "ab"}},
      {"root ::= [^a-c]", {"d", "é", "😀", "\n", "`"}, {"a", "c", "", "\xC3", "\xFF", "dd"}},
      {"root ::= [a-cx-]", {"a", "x", "-"}, {"d", "y"}},
      {R"(root ::= [\]\\\^\-])", {"]", "\\", "^", "-"}, {"[", "_"}},
      {"root ::= [à-ü]", {"à", "é", "ü"}, {"a", "ÿ", "\xC3"}},
      {R"(root ::= [\u0400-\u04FF]+)", {"Москва"}, {"Moskva", ""}},
      {R"(root ::= [\x80-\U0010FFFF])",
       {"\xC2\x80", "é", "€", "\xED\x9F\xBF", "\xEE\x80\x80", "😀", "\xF4\x8F\xBF\xBF"},
       {"a", "\x80", "\xC1\xBF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE0\x80\x80"}},
      {"root ::= .", {"a", "\n", "é", "😀"}, {"", "ab", "\x80"}},
      {"root ::= [^]", {"a", "\n"}, {""}},
      {"root ::= []* \"a\"", {"a"}, {"", "aa"}},
      {R"(root ::= [^"\\\x00-\x1F])", {"a", "\x7F", "é"}, {"\"", "\\", "\n"}},
  });
}

TEST(Gbnf, Repetition) {
  check({
      {R"(root ::= "a"*)", {"", "a", "aaaa"}, {"b", "ab"}},
      {R"(root ::= "a"+)", {"a", "aaaa"}, {"", "b"}},
      {R"(root ::= "a"? "b")", {"b", "ab"}, {"", "a", "aab"}},
      {R"(root ::= "a"{3})", {"aaa"}, {"", "aa", "aaaa"}},
      {R"(root ::= "a"{2,})", {"aa", "aaaaa"}, {"", "a"}},
      {R"(root ::= "a"{1,3})", {"a", "aa", "aaa"}, {"", "aaaa"}},
      {R"(root ::= "a"{0,2}"b")", {"b", "ab", "aab"}, {"aaab", "aa"}},
      {R"(root ::= "a"{0} "b")", {"b"}, {"ab"}},
      {R"(root ::= ("a" | "b" "c"){2})", {"aa", "abc", "bca", "bcbc"}, {"a", "bc", "aaa"}},
      {R"(root ::= ("a"{2}){2,3})", {"aaaa", "aaaaaa"}, {"aa", "aaa", "aaaaa"}},
      {R"(root ::= "a"{ 1 , 2 } "b"*)", {"ab", "aabb"}, {"b", "aaab"}},
      {R"(root ::= "a"*+? "b")", {"b", "aab"}, {"a"}},
      {"root ::= [a-z]{70,80}",
       {std::string(70, 'x'), std::string(80, 'x')},
       {std::string(69, 'x'), std::string(81, 'x')}},
      {"root ::= [ab]{100} \"c\"",
       {std::string(100, 'a') + "c"},
       {std::string(99, 'a') + "c", std::string(101, 'a') + "c"}},
      {"root ::= ([ab]{0,40} \",\"){1,50}",
       {",", "ab,", std::string(40, 'a') + "," + std::string(40, 'b') + ",", std::string(50, ',')},
       {"", std::string(41, 'a') + ",", "ab", std::string(51, ',')}},
      {"root ::= (\"a\"? \"b\"?){0,100}",
       {"", "ab", "ba", std::string(100, 'a'), std::string(200, 'b').substr(0, 100)},
       {std::string(101, 'a'), "c"}},
      {"root ::= (\"a\"*){90,100} \"b\"", {"b", std::string(300, 'a') + "b"}, {"", "ba"}},
  });
}

TEST(Gbnf, Recursion) {
  check({
      {R"g(root ::= "(" root ")" | "")g", {"", "()", "((()))"}, {"(", "())", ")("}},
      {R"(root ::= "a" root "b" root | "")", {"", "ab", "aabb", "abab", "aababb"}, {"a", "ba", "aab"}},
      {"root ::= list\nlist ::= item (\",\" list)?\nitem ::= [0-9]+", {"1", "1,2", "10,20,30"}, {"", "1,", ",1"}},
      {R"(root ::= "x" root | "y")", {"y", "xy", std::string(5000, 'x') + "y"}, {"x", "yx"}},
      {"root ::= expr\nexpr ::= term ([-+] term)*\nterm ::= fact ([*/] fact)*\nfact ::= [0-9]+ | \"(\" expr \")\"",
       {"1", "1+2*3", "(1+2)*3", "((((4))))"},
       {"", "1+", "(1", "1 + 2", "()"}},
      {"root ::= \"a\" root | \"b\" dead | \"d\"\ndead ::= \"c\" dead\n", {"d", "aad"}, {"ab", "abc"}},
  });
}

TEST(Gbnf, NoText) {
  expect_errors({{"root ::= \"a\" root", "no text matches"},
                 {"root ::= []", "no text matches"},
                 {"root ::= \"a\" x\nx ::= \"b\" x", "no text matches"}});
}

TEST(Gbnf, ErrorsNameThePlace) {
  expect_errors({
      {"root ::= \"a", "line 1, column 10"},
      {"root ::= \"a\"\nb ::= [a", "line 2, column 7"},
      {"root ::= (\"a\"", "this '(' is not closed"},
      {"root ::= \"a\")", "unexpected character"},
      {"root ::= *", "nothing to repeat"},
      {"root ::= | +", "nothing to repeat"},
      {"root ::= \"a\"{2", "'}' is expected"},
      {"root ::= \"a\"{,2}", "a number is expected"},
      {"root ::= \"a\"{3,2}", "below the lower one"},
      {"root ::= \"a\"{2001}", "limit of 2000"},
      {"root ::= \"a\"{99999999999999999999}", "limit of 2000"},
      {"root ::= (\"a\"{100}){21}", "product of nested repetitions 2100 is above the limit of 2000"},
      {"root ::= (((\"a\"{2000})){2000})", "product of nested repetitions"},
      {"root ::= [z-a]", "range ends before it begins"},
      {"root ::= \"\\q\"", "unknown escape"},
      {"root ::= \"\\x4\"", "2 hex digits"},
      {"root ::= \"\\uD800\"", "names no character"},
      {"root ::= \"\\U00110000\"", "names no character"},
      {"root ::= \"\xFF\"", "invalid UTF-8"},
      {"root ::= foo", "rule 'foo' is used but not defined"},
      {"foo ::= \"a\"", "no rule 'root'"},
      {"", "no rule 'root'"},
      {"root ::= \"a\"\nroot ::= \"b\"", "defined twice"},
      {"root = \"a\"", "'::=' is expected"},
      {"root ::= <think", "not closed"},
      {"root ::= !\"a\"", "'!' stands before a token only"},
      {"root ::= root \"a\" | \"b\"", "left recursion: rule 'root'"},
      {"root ::= \"x\"? root", "left recursion"},
      {"root ::= a\na ::= b \"x\" | \"y\"\nb ::= \"z\"* a", "left recursion"},
      {"root ::= root", "left recursion"},
      {"root ::= (\"a\" | root)* \"b\"", "left recursion"},
      {"root ::= \"a\" $", "unexpected character"},
      {std::string("root ::= \"a\"\0", 13), "unexpected character"},
  });
}

TEST(Gbnf, LimitsAreSettings) {
  const auto error = [](const std::string& text, const GrammarLimits& limits) -> std::string {
    try {
      Grammar::from_gbnf(text, limits);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_NE(error("root ::= \"abc\"", {.text_bytes = 10}).find("limit is 10"), std::string::npos);
  EXPECT_NE(error("root ::= ((\"a\"))", {.group_nesting = 1}).find("limit of 1"), std::string::npos);
  EXPECT_EQ(error("root ::= ((\"a\"))", {.group_nesting = 2}), "");
  EXPECT_NE(error("root ::= a\na ::= b\nb ::= \"x\"", {.rules = 2}).find("more than 2 rules"), std::string::npos);
  EXPECT_NE(error("root ::= \"abcdefghij\"{20}", {.symbols = 100}).find("more than 100 symbols"), std::string::npos);
  EXPECT_NE(error("root ::= \"a\"{20}", {.repetition = 10}).find("limit of 10"), std::string::npos);
}

}  // namespace
}  // namespace strata::text
