// States and masks: tokens by name, ends, copies, and the published vocabulary.
#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "text/grammar.h"
#include "unit/text/vocabularies.h"

namespace strata::text {
namespace {

// Bytes, then "ab" 256, "<think>" 257, "</think>" 258, "<|im_end|>" 259, "[PAD]" 260.
const Tokenizer& small() {
  static const Tokenizer tokenizer(byte_vocabulary({{"a", "b"}}, {{"<think>", TokenType::UserDefined},
                                                                  {"</think>", TokenType::UserDefined},
                                                                  {"<|im_end|>", TokenType::Control},
                                                                  {"[PAD]", TokenType::Unused}}));
  return tokenizer;
}
const TokenTrie& small_trie() {
  static const TokenTrie trie(small());
  return trie;
}
const Tokenizer& qwen2() {
  static const Tokenizer tokenizer(qwen2_vocabulary("qwen2"));
  return tokenizer;
}
const TokenTrie& qwen2_trie() {
  static const TokenTrie trie(qwen2());
  return trie;
}

std::vector<int32_t> allowed(GrammarState& state) {
  TokenMask mask;
  state.allowed_tokens(mask);
  std::vector<int32_t> ids;
  for (int32_t id = 0; id < mask.size(); ++id) {
    if (mask.test(id)) ids.push_back(id);
  }
  EXPECT_EQ(mask.count(), static_cast<int32_t>(ids.size()));
  return ids;
}

using Ids = std::vector<int32_t>;

TEST(GrammarState, EndsOnlyWhereTheTextMayEnd) {
  GrammarState state(Grammar::from_gbnf("root ::= \"a\" \"b\"?"), small_trie());
  EXPECT_EQ(allowed(state), (Ids{'a', 256}));
  EXPECT_FALSE(state.accepting());
  EXPECT_TRUE(state.accept('a'));
  EXPECT_EQ(allowed(state), (Ids{'b', 259}));
  EXPECT_TRUE(state.accepting());
  EXPECT_FALSE(state.finished());
  GrammarState ended = state;
  EXPECT_TRUE(ended.accept(259));
  EXPECT_TRUE(ended.finished());
  EXPECT_TRUE(state.accept('b'));
  EXPECT_TRUE(state.finished());
  EXPECT_EQ(allowed(state), (Ids{259}));
  EXPECT_FALSE(state.accept('b'));
  EXPECT_TRUE(state.dead());
  EXPECT_TRUE(allowed(state).empty());
  EXPECT_FALSE(state.accept(259));
}

TEST(GrammarState, TokensByName) {
  GrammarState state(Grammar::from_gbnf("root ::= <think> !</think>* </think> \"a\""), small_trie());
  EXPECT_EQ(allowed(state), (Ids{257}));
  GrammarState spelled = state;
  EXPECT_FALSE(spelled.accept("<think>"));  // only the token itself
  EXPECT_TRUE(state.accept(257));
  EXPECT_EQ(allowed(state).size(), 259u);  // every token but the end and the padding
  EXPECT_TRUE(state.accept('x'));
  EXPECT_TRUE(state.accept(256));
  EXPECT_TRUE(state.accept(258));
  EXPECT_EQ(allowed(state), (Ids{'a'}));
  EXPECT_TRUE(state.accept('a'));
  EXPECT_TRUE(state.finished());
}

// A user-defined token is text too: it may stand where its bytes may.
TEST(GrammarState, UserDefinedTokensAreText) {
  GrammarState state(Grammar::from_gbnf("root ::= \"<think>x\""), small_trie());
  EXPECT_EQ(allowed(state), (Ids{'<', 257}));
  EXPECT_TRUE(state.accept(257));
  EXPECT_EQ(allowed(state), (Ids{'x'}));
}

TEST(GrammarState, AByteAndATokenAtOnce) {
  GrammarState state(Grammar::from_gbnf("root ::= <think> \"1\" | \"<think>\" \"2\""), small_trie());
  EXPECT_TRUE(state.accept(257));
  EXPECT_EQ(allowed(state), (Ids{'1', '2'}));
}

TEST(GrammarState, UnknownTokenNames) {
  for (const char* name : {"<thonk>", "<|im_end|>", "[PAD]"}) {
    const Grammar grammar = Grammar::from_gbnf(name[0] == '<' ? std::string("root ::= ") + name : "root ::= <[PAD]>");
    try {
      GrammarState state(grammar, small_trie());
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("no user-defined token"), std::string::npos);
    }
  }
}

TEST(GrammarState, IdsOutsideTheVocabulary) {
  GrammarState state(Grammar::from_gbnf("root ::= .*"), small_trie());
  EXPECT_THROW(state.accept(-1), Error);
  EXPECT_THROW(state.accept(261), Error);
  EXPECT_FALSE(state.accept(260));  // padding
}

TEST(GrammarState, CopiesGoTheirOwnWay) {
  GrammarState state(Grammar::json_object(), small_trie());
  for (const char c : std::string("{\"a\":[1,[2,{\"b\":")) ASSERT_TRUE(state.accept(static_cast<int32_t>(c)));
  const Ids before = allowed(state);
  GrammarState copy = state;
  EXPECT_TRUE(copy.accept("\"x\"}]]}"));
  EXPECT_TRUE(copy.finished());
  EXPECT_EQ(allowed(state), before);
  copy = state;
  EXPECT_EQ(allowed(copy), before);
}

TEST(GrammarState, OneGrammarManyVocabularies) {
  const Grammar grammar = Grammar::from_gbnf("root ::= \"ab\"");
  GrammarState one(grammar, small_trie()), two(grammar, qwen2_trie());
  EXPECT_EQ(allowed(one), (Ids{'a', 256}));
  EXPECT_EQ(allowed(two).size(), 2u);
  EXPECT_EQ(allowed(one), (Ids{'a', 256}));
}

// Masks of a counted string near its end, with real tokens, and elsewhere: each token tried on its own.
TEST(GrammarState, MasksOfThePublishedVocabulary) {
  const std::string schema =
      R"({"type": "object", "properties": {"name": {"type": "string", "minLength": 3, "maxLength": 12},
      "list": {"type": "array", "items": {"anyOf": [{"type": "integer", "minimum": 7, "maximum": 1234}, {"type": "string", "pattern": "^([a-z]{1,9} ){2,30}[A-Z]+$"}]}}},
      "additionalProperties": {"type": "number"}})";
  const Grammar grammar = Grammar::from_json_schema(schema);
  for (const std::string text :
       {"", "{", "{\"name\": \"", "{\"name\":\"a", "{\"name\": \"0123456789", "{\"name\": \"01234567890\\u12", "{\"na",
        "{\"other\": -1", "{\"list\": [", "{\"list\": [12", "{\"list\": [\"abc ", "{\"list\": [\"abc de ",
        "{\"name\": \"\xE6\x97"}) {
    GrammarState state(grammar, qwen2_trie());
    ASSERT_TRUE(state.accept(text)) << text;
    TokenMask mask;
    state.allowed_tokens(mask);
    int allowed_tokens = 0;
    for (int32_t id = 0; id < mask.size(); ++id) {
      if (qwen2().ends_generation(id)) continue;
      GrammarState copy = state;
      const bool goes_on = copy.accept(id);
      ASSERT_EQ(mask.test(id), goes_on) << text << " + " << qwen2().bytes(id);
      allowed_tokens += goes_on;
    }
    EXPECT_GT(allowed_tokens, 0);
  }
}

}  // namespace
}  // namespace strata::text
