// Grammars that count from behind a text on, and biases of tokens.
#include <gtest/gtest.h>

#include "runtime/output.h"
#include "runtime/sampler.h"

namespace strata {
namespace {

// One token a byte, and "b!" as a token of its own, 256.
text::TokenTrie byte_trie() {
  auto data = std::make_shared<text::TokenTrie::Data>();
  data->vocabulary = 257;
  data->longest = 2;
  for (int32_t id = 0; id < 256; ++id) data->bytes.emplace_back(1, static_cast<char>(id));
  data->bytes.emplace_back("b!");
  // Depth-first: each byte below the root, and "!" below "b".
  data->nodes.push_back({258, 0, 0, 0});
  uint32_t tokens = 0;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const auto here = static_cast<uint32_t>(data->nodes.size());
    const uint32_t size = byte == 'b' ? 2 : 1;
    data->nodes.push_back({here + size, tokens++, 1, static_cast<uint8_t>(byte)});
    data->tokens.push_back(static_cast<int32_t>(byte));
    if (byte != 'b') continue;
    data->nodes.push_back({here + 2, tokens++, 2, '!'});
    data->tokens.push_back(256);
  }
  data->nodes.push_back({258, tokens, 0, 0});
  return text::TokenTrie(std::shared_ptr<const text::TokenTrie::Data>(data));
}

GenerateRequest request_with(const char* grammar, const std::string& after, bool again) {
  GenerateRequest request;
  request.grammar = text::Grammar::from_gbnf(grammar);
  request.grammar_after = after;
  request.grammar_again = again;
  return request;
}

void accept(Constraint& constraint, std::string_view text) {
  for (const char c : text) constraint.accept(static_cast<uint8_t>(c));
}

TEST(ConstraintTest, CountsFromBehindItsText) {
  Constraint constraint(request_with("root ::= \"xy\"", "ab", false), byte_trie());
  EXPECT_EQ(constraint.allowed(), nullptr);
  accept(constraint, "xyaab");
  ASSERT_NE(constraint.allowed(), nullptr);
  EXPECT_TRUE(constraint.allowed()->test('x'));
  EXPECT_EQ(constraint.allowed()->count(), 1);
  EXPECT_FALSE(constraint.complete());
  accept(constraint, "xy");
  EXPECT_TRUE(constraint.complete());
}

// What a token holds behind the text belongs to the grammar.
TEST(ConstraintTest, ATokenMayReachIntoTheGrammar) {
  Constraint constraint(request_with("root ::= \"!y\"", "ab", false), byte_trie());
  accept(constraint, "a");
  constraint.accept(256);
  ASSERT_NE(constraint.allowed(), nullptr);
  EXPECT_TRUE(constraint.allowed()->test('y'));
  EXPECT_EQ(constraint.allowed()->count(), 1);
}

TEST(ConstraintTest, CountsAgainEachTime) {
  Constraint constraint(request_with("root ::= \"x\"", "ab", true), byte_trie());
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(constraint.allowed(), nullptr);
    accept(constraint, "free ab");
    ASSERT_NE(constraint.allowed(), nullptr);
    accept(constraint, "x");
    EXPECT_FALSE(constraint.complete());
  }
  EXPECT_EQ(constraint.allowed(), nullptr);
}

TEST(SamplerBias, BiasesAreAddedBeforeTheChoice) {
  const std::vector<float> logits{1, 3, 2};
  const auto chosen = [&](std::vector<std::pair<int32_t, float>> bias) {
    std::vector<float> copy = logits;
    Sampler sampler({.temperature = 0, .logit_bias = std::move(bias)});
    return sampler.sample(copy, {});
  };
  EXPECT_EQ(chosen({}), 1);
  EXPECT_EQ(chosen({{1, -100.0f}}), 2);
  EXPECT_EQ(chosen({{0, 5.0f}}), 0);
  EXPECT_FALSE(Sampler({.logit_bias = {{0, 1.0f}}}).takes_likeliest());
}

}  // namespace
}  // namespace strata
