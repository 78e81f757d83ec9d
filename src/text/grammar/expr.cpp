#include "text/grammar/expr.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"

namespace strata::text::grammar {

void refuse(const std::string& message, const std::string& where) { throw Error(ErrorKind::Argument, message, where); }

namespace {

constexpr uint32_t kMaxDepth = 1000;  // what is done with expressions is recursive

int64_t now_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Deadline::Deadline(double seconds) : seconds_(seconds), end_(now_us() + static_cast<int64_t>(seconds * 1e6)) {}

void Deadline::check() {
  if (++calls_ % 256 == 0) check_now();
}

void Deadline::check_now() const {
  if (now_us() > end_)
    refuse("the grammar takes longer to compile than the limit of " + std::to_string(seconds_) + " s");
}

ExprId Rules::add(const Expr& expr, uint32_t depth) {
  deadline.check();
  if (depth > kMaxDepth) refuse("expressions nest deeper than the limit of " + std::to_string(kMaxDepth), "grammar");
  // Each symbol of a text makes at most a few expressions; what the schema compiler adds is small beside the limit.
  if (exprs.size() >= 4 * limits.symbols)
    refuse("the grammar has more than " + std::to_string(limits.symbols) + " symbols");
  exprs.push_back(expr);
  depths_.push_back(static_cast<uint16_t>(depth));
  return static_cast<ExprId>(exprs.size() - 1);
}

ExprId Rules::literal(std::string_view bytes) {
  literals.emplace_back(bytes);
  return add({.kind = Expr::Kind::Literal, .first = static_cast<uint32_t>(literals.size() - 1)});
}

ExprId Rules::char_class(CharSet set) {
  set.normalise();
  classes.push_back(std::move(set));
  return add({.kind = Expr::Kind::Class, .first = static_cast<uint32_t>(classes.size() - 1)});
}

ExprId Rules::list(Expr::Kind kind, std::span<const ExprId> parts) {
  if (parts.size() == 1) return parts[0];
  const auto first = static_cast<uint32_t>(kid_ids.size());
  kid_ids.insert(kid_ids.end(), parts.begin(), parts.end());
  uint32_t depth = 0;
  for (const ExprId part : parts) depth = std::max<uint32_t>(depth, depths_[part]);
  return add({.kind = kind, .first = first, .count = static_cast<uint32_t>(parts.size())}, depth + 1);
}

ExprId Rules::sequence(std::span<const ExprId> parts) { return list(Expr::Kind::Sequence, parts); }
ExprId Rules::alternation(std::span<const ExprId> parts) { return list(Expr::Kind::Alternation, parts); }

ExprId Rules::repeat(ExprId what, uint32_t min, uint32_t max) {
  return add({.kind = Expr::Kind::Repeat, .first = what, .min = min, .max = max}, depths_[what] + 1u);
}

ExprId Rules::rule_ref(uint32_t rule) { return add({.kind = Expr::Kind::Rule, .first = rule}); }

ExprId Rules::token(std::string_view text, bool negated) {
  tokens.emplace_back(text);
  return add({.kind = Expr::Kind::Token, .first = static_cast<uint32_t>(tokens.size() - 1), .min = negated ? 1u : 0u});
}

ExprId Rules::other_key(std::vector<std::u32string> keys) {
  key_lists.push_back(std::move(keys));
  return add({.kind = Expr::Kind::OtherKey, .first = static_cast<uint32_t>(key_lists.size() - 1)});
}

uint32_t Rules::add_rule(std::string name) {
  if (rules.size() >= limits.rules) refuse("the grammar has more than " + std::to_string(limits.rules) + " rules");
  rules.push_back({.name = std::move(name)});
  return static_cast<uint32_t>(rules.size() - 1);
}

void Rules::define(uint32_t rule, ExprId body) {
  rules[rule].body = body;
  rules[rule].defined = true;
}

}  // namespace strata::text::grammar
