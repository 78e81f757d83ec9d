// Facts about rules: nullable, productive, recursive, left-recursive, size. Recursion follows the nesting of one rule's
// expression, which the parsers bound; whatever goes from rule to rule is a loop.
#include <algorithm>

#include "text/grammar/expr.h"

namespace strata::text::grammar {

namespace {

using Kind = Expr::Kind;
using Graph = std::vector<std::vector<uint32_t>>;

void collect_refs(const Rules& rules, ExprId id, std::vector<uint32_t>& refs) {
  const Expr& expr = rules.exprs[id];
  if (expr.kind == Kind::Rule) refs.push_back(expr.first);
  if (expr.kind == Kind::Repeat) collect_refs(rules, expr.first, refs);
  if (expr.kind == Kind::Sequence || expr.kind == Kind::Alternation) {
    for (const ExprId kid : rules.kids(expr)) collect_refs(rules, kid, refs);
  }
}

template <class Part>
bool one_nullable(const Rules& rules, const std::vector<uint8_t>& rule_nullable, const Expr& expr,
                  const Part& nullable) {
  switch (expr.kind) {
    case Kind::Literal: return rules.literals[expr.first].empty();
    case Kind::Sequence: return std::ranges::all_of(rules.kids(expr), nullable);
    case Kind::Alternation: return std::ranges::any_of(rules.kids(expr), nullable);
    case Kind::Repeat: return expr.min == 0 || nullable(expr.first);
    case Kind::Rule: return rule_nullable[expr.first] != 0;
    case Kind::Class:
    case Kind::Token:
    case Kind::OtherKey: return false;
  }
  return false;
}

template <class Part>
bool one_productive(const Rules& rules, const std::vector<uint8_t>& rule_productive, const Expr& expr,
                    const Part& productive) {
  switch (expr.kind) {
    case Kind::Class: return !rules.classes[expr.first].empty();
    case Kind::Sequence: return std::ranges::all_of(rules.kids(expr), productive);
    case Kind::Alternation: return std::ranges::any_of(rules.kids(expr), productive);
    case Kind::Repeat: return expr.min == 0 || productive(expr.first);
    case Kind::Rule: return rule_productive[expr.first] != 0;
    case Kind::Literal:
    case Kind::Token:
    case Kind::OtherKey: return true;
  }
  return true;
}

bool is_nullable(const Rules& rules, const std::vector<uint8_t>& rule_nullable, ExprId id) {
  return one_nullable(rules, rule_nullable, rules.exprs[id],
                      [&](ExprId kid) { return is_nullable(rules, rule_nullable, kid); });
}

bool is_productive(const Rules& rules, const std::vector<uint8_t>& rule_productive, ExprId id) {
  return one_productive(rules, rule_productive, rules.exprs[id],
                        [&](ExprId kid) { return is_productive(rules, rule_productive, kid); });
}

// Rules that a text of the expression may begin with; `nullable` of each expression.
void collect_first_refs(const Rules& rules, const std::vector<uint8_t>& nullable, ExprId id,
                        std::vector<uint32_t>& refs) {
  const Expr& expr = rules.exprs[id];
  if (expr.kind == Kind::Rule) refs.push_back(expr.first);
  if (expr.kind == Kind::Repeat && expr.max > 0) collect_first_refs(rules, nullable, expr.first, refs);
  if (expr.kind != Kind::Sequence && expr.kind != Kind::Alternation) return;
  for (const ExprId kid : rules.kids(expr)) {
    collect_first_refs(rules, nullable, kid, refs);
    if (expr.kind == Kind::Sequence && !nullable[kid]) return;
  }
}

// The least fixed point of `holds` over all rules: a rule is looked at again when one that it uses has changed.
template <class Holds>
std::vector<uint8_t> fixed_point(Rules& rules, const Graph& users, const Holds& holds) {
  std::vector<uint8_t> facts(rules.rules.size(), 0), queued(rules.rules.size(), 1);
  std::vector<uint32_t> work(rules.rules.size());
  for (uint32_t i = 0; i < work.size(); ++i) work[i] = i;
  while (!work.empty()) {
    const uint32_t rule = work.back();
    work.pop_back();
    queued[rule] = 0;
    rules.deadline.check_now();
    if (facts[rule] || !holds(rules, facts, rules.rules[rule].body)) continue;
    facts[rule] = 1;
    for (const uint32_t user : users[rule]) {
      if (!queued[user] && !facts[user]) queued[user] = 1, work.push_back(user);
    }
  }
  return facts;
}

// Strongly connected components (Tarjan), each after those it leads to.
std::vector<std::vector<uint32_t>> components(const Graph& graph, const std::vector<uint32_t>& starts) {
  constexpr uint32_t kNew = UINT32_MAX;
  std::vector<uint32_t> index(graph.size(), kNew), low(graph.size(), 0), open;
  std::vector<uint8_t> is_open(graph.size(), 0);
  std::vector<std::pair<uint32_t, size_t>> path;  // rule, next of its edges
  std::vector<std::vector<uint32_t>> found;
  uint32_t next = 0;
  const auto enter = [&](uint32_t v) {
    index[v] = low[v] = next++;
    open.push_back(v), is_open[v] = 1;
    path.emplace_back(v, 0);
  };
  for (const uint32_t start : starts) {
    if (index[start] == kNew) enter(start);
    while (!path.empty()) {
      auto& [v, edge] = path.back();
      if (edge < graph[v].size()) {
        const uint32_t w = graph[v][edge++];
        if (index[w] == kNew) {
          enter(w);
        } else if (is_open[w]) {
          low[v] = std::min(low[v], index[w]);
        }
        continue;
      }
      const uint32_t done = v;
      path.pop_back();
      if (!path.empty()) low[path.back().first] = std::min(low[path.back().first], low[done]);
      if (low[done] != index[done]) continue;
      std::vector<uint32_t>& component = found.emplace_back();
      for (bool last = false; !last;) {
        const uint32_t w = open.back();
        open.pop_back(), is_open[w] = 0;
        component.push_back(w);
        last = w == done;
      }
    }
  }
  return found;
}

bool is_cycle(const Graph& graph, const std::vector<uint32_t>& component) {
  const uint32_t one = component[0];
  return component.size() > 1 || std::find(graph[one].begin(), graph[one].end(), one) != graph[one].end();
}

void refuse_left_recursion(const Rules& rules, const Graph& first, const std::vector<uint32_t>& all) {
  for (const auto& component : components(first, all)) {
    if (!is_cycle(first, component)) continue;
    refuse("left recursion: rule '" + rules.rules[component.back()].name +
               "' can begin with itself; put what it repeats behind a character, or use * or +",
           "grammar");
  }
}

// Symbols with every repetition written out.
uint64_t symbols_of(Rules& rules, ExprId id, uint64_t repeated) {
  const GrammarLimits& limits = rules.limits;
  const Expr& expr = rules.exprs[id];
  rules.deadline.check();
  uint64_t sum = 1;
  switch (expr.kind) {
    case Kind::Literal: sum = std::max<uint64_t>(1, rules.literals[expr.first].size()); break;
    case Kind::Class: sum = std::max<uint64_t>(1, rules.classes[expr.first].ranges().size()); break;
    case Kind::Sequence:
    case Kind::Alternation:
      for (const ExprId kid : rules.kids(expr)) sum += symbols_of(rules, kid, repeated);
      break;
    case Kind::Repeat: {
      const uint64_t bound = expr.max == kUnbounded ? expr.min : expr.max;
      const auto limit = [](const char* what, uint64_t value, size_t max) {
        refuse(std::string(what) + " " + std::to_string(value) + " is above the limit of " + std::to_string(max),
               "grammar");
      };
      if (bound > limits.repetition) limit("the repetition bound", bound, limits.repetition);
      repeated *= std::max<uint64_t>(1, bound);
      if (repeated > limits.repetition) limit("the product of nested repetitions", repeated, limits.repetition);
      sum += symbols_of(rules, expr.first, repeated) * std::max<uint64_t>(1, bound + (expr.max == kUnbounded ? 1 : 0));
      break;
    }
    case Kind::Rule:
    case Kind::Token: break;
    case Kind::OtherKey:
      for (const auto& key : rules.key_lists[expr.first]) sum += key.size();
      break;
  }
  if (sum > limits.symbols)
    refuse("the grammar has more than " + std::to_string(limits.symbols) + " symbols", "grammar");
  return sum;
}

void check_size(Rules& rules) {
  uint64_t symbols = 0;
  for (const Rule& rule : rules.rules) {
    symbols += symbols_of(rules, rule.body, 1);
    if (symbols > rules.limits.symbols) {
      refuse("the grammar has more than " + std::to_string(rules.limits.symbols) + " symbols", "grammar");
    }
  }
}

}  // namespace

// Parts of an expression have lower numbers than the whole.
std::vector<uint8_t> nullable_exprs(const Rules& rules, const std::vector<uint8_t>& rule_nullable) {
  std::vector<uint8_t> facts(rules.exprs.size());
  for (ExprId id = 0; id < facts.size(); ++id) {
    facts[id] = one_nullable(rules, rule_nullable, rules.exprs[id], [&](ExprId kid) { return facts[kid] != 0; });
  }
  return facts;
}

std::vector<uint8_t> productive_exprs(const Rules& rules, const std::vector<uint8_t>& rule_productive) {
  std::vector<uint8_t> facts(rules.exprs.size());
  for (ExprId id = 0; id < facts.size(); ++id) {
    facts[id] = one_productive(rules, rule_productive, rules.exprs[id], [&](ExprId kid) { return facts[kid] != 0; });
  }
  return facts;
}

RuleFacts RuleFacts::of(Rules& rules) {
  check_size(rules);
  const size_t count = rules.rules.size();
  Graph refs(count), users(count), first(count);
  std::vector<uint32_t> all(count);
  RuleFacts facts;
  facts.uses.assign(count, 0);
  for (uint32_t i = 0; i < count; ++i) {
    all[i] = i;
    collect_refs(rules, rules.rules[i].body, refs[i]);
    for (const uint32_t used : refs[i]) ++facts.uses[used];
    std::ranges::sort(refs[i]);
    refs[i].erase(std::unique(refs[i].begin(), refs[i].end()), refs[i].end());
    for (const uint32_t used : refs[i]) users[used].push_back(i);
  }
  facts.nullable = fixed_point(rules, users, is_nullable);
  facts.productive = fixed_point(rules, users, is_productive);
  const std::vector<uint8_t> nullable = nullable_exprs(rules, facts.nullable);
  for (uint32_t i = 0; i < count; ++i) collect_first_refs(rules, nullable, rules.rules[i].body, first[i]);
  refuse_left_recursion(rules, first, all);
  if (!facts.productive[rules.root])
    refuse("no text matches: every way through rule 'root' is endless or empty", "grammar");

  facts.recursive.assign(count, 0);
  for (const auto& component : components(refs, {rules.root})) {
    const bool cycle = is_cycle(refs, component);
    for (const uint32_t rule : component) {
      facts.recursive[rule] = cycle ? 1 : 0;
      facts.order.push_back(rule);
    }
  }
  return facts;
}

}  // namespace strata::text::grammar
