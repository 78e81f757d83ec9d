// Rules as expressions: what the parsers produce and the automaton is made of.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/grammar.h"
#include "text/grammar/charset.h"

namespace strata::text::grammar {

// Error{Argument}
[[noreturn]] void refuse(const std::string& message, const std::string& where = {});

// Compiling ends with an error when it takes too long.
class Deadline {
 public:
  explicit Deadline(double seconds);
  void check();  // looks at the clock once in a while
  void check_now() const;

 private:
  double seconds_;
  int64_t end_;
  uint32_t calls_ = 0;
};

using ExprId = uint32_t;

inline constexpr uint32_t kUnbounded = std::numeric_limits<uint32_t>::max();

struct Expr {
  enum class Kind : uint8_t {
    Literal,      // first: of `literals`
    Class,        // first: of `classes`
    Sequence,     // kids [first, first + count); none: the empty text
    Alternation,  // the same; none: matches nothing
    Repeat,       // first: the expression; min, max
    Rule,         // first: of `rules`
    Token,        // first: of `tokens`; min 1: any token but this one
    OtherKey,     // first: of `key_lists`: contents of a JSON string that is none of these, and its closing quote
  };
  Kind kind;
  uint32_t first = 0, count = 0;
  uint32_t min = 0, max = 0;
};

struct Rule {
  std::string name;
  ExprId body = 0;
  bool defined = false;
  bool keep = false;  // never copied into its callers: one set of masks serves them all
};

class Rules {
 public:
  explicit Rules(const GrammarLimits& rule_limits) : limits(rule_limits), deadline(rule_limits.compile_seconds) {}

  ExprId literal(std::string_view bytes);
  ExprId char_class(CharSet set);
  ExprId sequence(std::span<const ExprId> parts);
  ExprId sequence(std::initializer_list<ExprId> parts) { return sequence(std::span(parts.begin(), parts.size())); }
  ExprId alternation(std::span<const ExprId> parts);
  ExprId alternation(std::initializer_list<ExprId> parts) {
    return alternation(std::span(parts.begin(), parts.size()));
  }
  ExprId repeat(ExprId what, uint32_t min, uint32_t max);
  ExprId optional(ExprId what) { return repeat(what, 0, 1); }
  ExprId star(ExprId what) { return repeat(what, 0, kUnbounded); }
  ExprId rule_ref(uint32_t rule);
  ExprId token(std::string_view text, bool negated);
  ExprId other_key(std::vector<std::u32string> keys);

  uint32_t add_rule(std::string name);  // Error above limits.rules
  void define(uint32_t rule, ExprId body);

  std::span<const ExprId> kids(const Expr& expr) const { return std::span(kid_ids).subspan(expr.first, expr.count); }

  GrammarLimits limits;
  mutable Deadline deadline;
  std::vector<Expr> exprs;
  std::vector<ExprId> kid_ids;
  std::vector<std::string> literals, tokens;
  std::vector<CharSet> classes;
  std::vector<std::vector<std::u32string>> key_lists;
  std::vector<Rule> rules;
  uint32_t root = 0;

 private:
  ExprId add(const Expr& expr, uint32_t depth = 1);
  ExprId list(Expr::Kind kind, std::span<const ExprId> parts);
  std::vector<uint16_t> depths_;  // of the expressions
};

// What is true of each rule; found before an automaton is made.
struct RuleFacts {
  std::vector<uint8_t> nullable;    // matches the empty text
  std::vector<uint8_t> productive;  // matches some text
  std::vector<uint8_t> recursive;   // may come back to itself
  std::vector<uint32_t> uses;       // places that refer to it
  std::vector<uint32_t> order;      // rules that the root reaches; what a rule uses comes before it, but for recursion

  // Error for left recursion, a root that matches no text, and the limits of symbols and repetitions.
  static RuleFacts of(Rules& rules);
};

// The same for every expression, given it for every rule.
std::vector<uint8_t> nullable_exprs(const Rules& rules, const std::vector<uint8_t>& rule_nullable);
std::vector<uint8_t> productive_exprs(const Rules& rules, const std::vector<uint8_t>& rule_productive);

}  // namespace strata::text::grammar
