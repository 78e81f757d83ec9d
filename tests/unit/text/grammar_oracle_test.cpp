// Random small grammars against a naive matcher, and masks against trying every token.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bitset>
#include <map>
#include <random>

#include "base/error.h"
#include "text/grammar.h"
#include "unit/text/vocabularies.h"

namespace strata::text {
namespace {

constexpr int kEndless = -1;

// An expression of a grammar, printed as GBNF and matched by the book.
struct Part {
  enum Kind { Literal, Class, Sequence, Choice, Repeat, Rule } kind;
  std::string text;  // literal; letters of the class
  std::vector<Part> parts;
  int min = 0, max = 0, rule = 0;
};
using RandomGrammar = std::vector<Part>;  // by rule; 0 is the root

std::string name_of(int rule) { return rule == 0 ? "root" : "r" + std::to_string(rule); }

std::string print(const Part& part) {
  switch (part.kind) {
    case Part::Literal: return "\"" + part.text + "\"";
    case Part::Class: return "[" + part.text + "]";
    case Part::Rule: return name_of(part.rule);
    case Part::Repeat: {
      const std::string bounds = part.max == kEndless ? std::to_string(part.min) + ","
                                                      : std::to_string(part.min) + "," + std::to_string(part.max);
      return "(" + print(part.parts[0]) + "){" + bounds + "}";
    }
    default: break;
  }
  std::string text = "(";
  for (size_t i = 0; i < part.parts.size(); ++i)
    text += (i == 0 ? "" : part.kind == Part::Choice ? " | " : " ") + print(part.parts[i]);
  return text + ")";
}

std::string print(const RandomGrammar& grammar) {
  std::string text;
  for (size_t i = 0; i < grammar.size(); ++i) text += name_of(static_cast<int>(i)) + " ::= " + print(grammar[i]) + "\n";
  return text;
}

struct Shape {
  std::string letters;
  int rules, most_repeats;
};

Part random_part(std::mt19937& random, const Shape& shape, int depth) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const auto letters = [&](int most) {
    std::string text;
    for (int n = below(most + 1); n > 0; --n)
      text += shape.letters[static_cast<size_t>(below(static_cast<int>(shape.letters.size())))];
    return text;
  };
  const int kind = depth == 0 ? below(3) : below(8);
  if (kind == 0) return {Part::Literal, letters(3), {}};
  if (kind == 1) return {Part::Class, letters(1) + shape.letters[0], {}};
  if (kind == 2) return {.kind = Part::Rule, .text = "", .parts = {}, .rule = below(shape.rules)};
  if (kind < 5) {
    Part part{.kind = Part::Repeat, .text = "", .parts = {random_part(random, shape, depth - 1)}};
    part.min = below(3) == 0 ? below(shape.most_repeats) : below(3);
    part.max = below(3) == 0 ? kEndless : part.min + below(shape.most_repeats);
    return part;
  }
  Part part{kind < 7 ? Part::Sequence : Part::Choice, "", {}};
  for (int n = 1 + below(3); n > 0; --n) part.parts.push_back(random_part(random, shape, depth - 1));
  return part;
}

RandomGrammar random_grammar(std::mt19937& random, const Shape& shape) {
  RandomGrammar grammar;
  for (int i = 0; i < shape.rules; ++i) grammar.push_back(random_part(random, shape, 3));
  return grammar;
}

// Ends of all matches that begin at a place. Only for grammars without left recursion.
class Naive {
 public:
  Naive(const RandomGrammar& grammar, const std::string& text) : grammar_(grammar), text_(text) {}
  bool matches() { return ends(grammar_[0], 0)[text_.size()]; }

 private:
  using Ends = std::bitset<128>;
  Ends ends(const Part& part, size_t at) {
    const auto known = memo_.find({&part, at});
    if (known != memo_.end()) return known->second;
    const Ends found = find_ends(part, at);
    return memo_[{&part, at}] = found;
  }
  Ends after(const Part& part, const Ends& starts) {
    Ends all;
    for (size_t start = 0; start <= text_.size(); ++start) {
      if (starts[start]) all |= ends(part, start);
    }
    return all;
  }
  static Ends only(bool holds, size_t at) { return holds ? Ends().set(at) : Ends(); }
  Ends find_ends(const Part& part, size_t at) {
    Ends all;
    switch (part.kind) {
      case Part::Literal: return only(text_.compare(at, part.text.size(), part.text) == 0, at + part.text.size());
      case Part::Class: return only(at < text_.size() && part.text.find(text_[at]) != std::string::npos, at + 1);
      case Part::Rule: return ends(grammar_[static_cast<size_t>(part.rule)], at);
      case Part::Choice:
        for (const Part& one : part.parts) all |= ends(one, at);
        return all;
      case Part::Sequence:
        all.set(at);
        for (const Part& one : part.parts) all = after(one, all);
        return all;
      case Part::Repeat: break;
    }
    Ends now = Ends().set(at);
    const int rounds = part.max == kEndless ? part.min + static_cast<int>(text_.size()) + 1 : part.max;
    for (int i = 0; i <= rounds && now.any(); ++i) {
      if (i >= part.min) all |= now;
      if (i < rounds) now = after(part.parts[0], now);
    }
    return all;
  }
  const RandomGrammar& grammar_;
  const std::string& text_;
  std::map<std::pair<const Part*, size_t>, Ends> memo_;
};

std::vector<std::string> all_texts(const std::string& letters, size_t longest) {
  std::vector<std::string> texts{""};
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].size() == longest) break;
    for (const char c : letters) texts.push_back(texts[i] + c);
  }
  return texts;
}

// How many grammars a property really looked at.
struct Tally {
  int compiled = 0, tried = 0, ambiguous = 0;
};

// Rapidcheck gives the seed, which begins small: each stands for several grammars.
template <class Check>
void for_grammars(uint32_t seed, int count, Shape shape, Tally& tally, const Check& check) {
  for (int i = 0; i < count; ++i) {
    std::mt19937 random(seed * 1000 + static_cast<uint32_t>(i));
    const RandomGrammar grammar = random_grammar(random, shape);
    ++tally.tried;
    try {
      check(grammar, random);
    } catch (const Error& error) {  // repetitions of what may be empty, through recursive rules
      RC_ASSERT(std::string(error.what()).find("too ambiguous") != std::string::npos);
      ++tally.ambiguous;
    }
  }
}

// nullopt: left recursion or a limit, which other tests look at.
std::optional<Grammar> compiled(const RandomGrammar& grammar, const std::vector<std::string>& texts, Tally& tally) {
  try {
    std::optional<Grammar> result = Grammar::from_gbnf(print(grammar), {.alive_states = 300});
    ++tally.compiled;
    return result;
  } catch (const Error& error) {
    const std::string what = error.what();
    const bool no_text = what.find("no text matches") != std::string::npos;
    if (no_text) {
      for (const std::string& text : texts) RC_ASSERT(!Naive(grammar, text).matches());
    }
    RC_ASSERT(no_text || what.find("left recursion") != std::string::npos ||
              what.find("product of nested") != std::string::npos);
    return std::nullopt;
  }
}

bool differs(const Grammar& automaton, const RandomGrammar& grammar, const std::string& text) {
  return automaton.matches(text) != Naive(grammar, text).matches();
}

Tally short_texts, counted, masks, counted_masks;

RC_GTEST_PROP(GrammarOracle, MatchesTheNaiveMatcher, (uint32_t seed)) {
  static const std::vector<std::string> texts = all_texts("ab", 6);
  for_grammars(seed, 20, {.letters = "ab", .rules = 3, .most_repeats = 4}, short_texts,
               [](const RandomGrammar& grammar, auto&) {
                 const auto automaton = compiled(grammar, texts, short_texts);
                 for (size_t i = 0; automaton && i < texts.size(); ++i) {
                   if (differs(*automaton, grammar, texts[i])) RC_FAIL(print(grammar) + "text '" + texts[i] + "'");
                 }
               });
}

// Long repetitions, which the automaton counts: texts of one letter.
RC_GTEST_PROP(GrammarOracle, CountsLikeTheNaiveMatcher, (uint32_t seed)) {
  for_grammars(seed, 3, {.letters = "a", .rules = 2, .most_repeats = 90}, counted,
               [](const RandomGrammar& grammar, auto& random) {
                 const auto automaton = compiled(grammar, {"", "a"}, counted);
                 for (size_t length = random() % 8; automaton && length < 110; length += 1 + random() % 16) {
                   const std::string text(length, 'a');
                   if (differs(*automaton, grammar, text))
                     RC_FAIL(print(grammar) + "a, times " + std::to_string(length));
                 }
               });
}

// A vocabulary of bytes, all texts of 2 to 5 letters, runs of one letter, a named token and an end.
const Tokenizer& letters_tokenizer() {
  static const Tokenizer tokenizer([] {
    std::vector<Added> added;
    for (const std::string& text : all_texts("ab", 5)) {
      if (text.size() > 1) added.push_back({text, TokenType::Normal});
    }
    for (size_t n = 6; n < 40; n += 3) added.push_back({std::string(n, 'a'), TokenType::Normal});
    added.push_back({"<a>", TokenType::UserDefined});
    added.push_back({"<|im_end|>", TokenType::Control});
    added.push_back({"[PAD]", TokenType::Unused});
    return byte_vocabulary({}, added);
  }());
  return tokenizer;
}

// allowed_tokens() against a copy of the state for each token.
std::string wrong_token(GrammarState& state, const TokenTrie& trie, TokenMask& mask) {
  state.allowed_tokens(mask);
  for (int32_t id = 0; id < trie.vocabulary(); ++id) {
    const auto& ends = trie.data().ends;
    const bool is_end = std::find(ends.begin(), ends.end(), id) != ends.end();
    GrammarState copy = state;
    const bool allowed = is_end ? state.accepting() : copy.accept(id);
    if (mask.test(id) != allowed)
      return "token " + std::to_string(id) + " '" + trie.data().bytes[static_cast<size_t>(id)] + "'";
  }
  return "";
}

void check_masks(const RandomGrammar& grammar, std::mt19937& random, Tally& tally) {
  static const TokenTrie trie(letters_tokenizer());
  const auto automaton = compiled(grammar, {""}, tally);
  if (!automaton) return;
  GrammarState state(*automaton, trie);
  TokenMask mask;
  std::string text;
  for (int step = 0; step < 8 && !state.finished(); ++step) {
    std::string wrong;
    try {
      wrong = wrong_token(state, trie, mask);
    } catch (const Error& error) {  // as above
      RC_ASSERT(std::string(error.what()).find("too ambiguous") != std::string::npos);
      ++tally.ambiguous;
      return;
    }
    if (!wrong.empty()) RC_FAIL(print(grammar) + "after '" + text + "': " + wrong);
    std::vector<int32_t> choices;
    for (int32_t id = 0; id < trie.vocabulary(); ++id) {
      if (mask.test(id) && !trie.data().bytes[static_cast<size_t>(id)].empty()) choices.push_back(id);
    }
    if (choices.empty()) break;
    const int32_t id = choices[random() % choices.size()];
    RC_ASSERT(state.accept(id));
    text += trie.data().bytes[static_cast<size_t>(id)];
    RC_ASSERT(state.accepting() == automaton->matches(text));
  }
}

RC_GTEST_PROP(GrammarOracle, MasksEqualTryingEveryToken, (uint32_t seed)) {
  for_grammars(seed, 10, {.letters = "ab", .rules = 3, .most_repeats = 4}, masks,
               [](const RandomGrammar& grammar, auto& random) { check_masks(grammar, random, masks); });
}

RC_GTEST_PROP(GrammarOracle, MasksInCountedLoops, (uint32_t seed)) {
  for_grammars(seed, 4, {.letters = seed % 2 ? "a" : "ab", .rules = 2, .most_repeats = 60}, counted_masks,
               [](const RandomGrammar& grammar, auto& random) { check_masks(grammar, random, counted_masks); });
}

// The properties above say something only if most grammars are not refused.
TEST(GrammarOracleTally, MostGrammarsAreLookedAt) {
  for (const Tally& tally : {short_texts, counted, masks, counted_masks}) {
    std::printf("%d grammars, %d compiled, %d too ambiguous\n", tally.tried, tally.compiled, tally.ambiguous);
    EXPECT_GE(4 * tally.compiled, tally.tried);
    EXPECT_LE(4 * tally.ambiguous, tally.compiled);
  }
}

}  // namespace
}  // namespace strata::text
