#include "text/grammar/automaton.h"

#include <algorithm>
#include <bitset>
#include <map>
#include <unordered_map>

namespace strata::text::grammar {

namespace {

using Kind = Expr::Kind;

// A counted repetition of at most this many nodes is written out: no counter then.
constexpr uint32_t kUnrolled = 64;
// Rules up to these sizes are copied into their callers: masks of tokens that run across several small rules come from
// the cache then. In a loop it pays even for larger ones.
constexpr uint32_t kSmallRule = 12, kSmallRuleInLoop = 64, kRuleUsedOnce = 2000;
constexpr int kMaxDepthToCopy = 300;         // so that recursion here stays shallow
constexpr size_t kMaxNodesCopied = 100'000;  // beyond this many nodes nothing is copied
constexpr uint32_t kMaxCost = 1u << 30;

// Builds from the end: each expression is given the node that follows it.
class Builder {
 public:
  explicit Builder(Rules& rules)
      : rules_(rules),
        facts_(RuleFacts::of(rules)),
        nullable_(nullable_exprs(rules, facts_.nullable)),
        productive_(productive_exprs(rules, facts_.productive)) {}

  Automaton build() {
    out_.alive_states = rules_.limits.alive_states;
    add({Op::End, -1, 0, 0});
    cost_.assign(rules_.rules.size(), 1);
    for (const uint32_t rule : facts_.order) cost_[rule] = cost(rules_.rules[rule].body);
    called_.assign(rules_.rules.size(), false);
    entry_.assign(rules_.rules.size(), 0);
    out_.root = rule_entry(rules_.root);
    while (!pending_.empty()) {
      const uint32_t rule = pending_.back();
      pending_.pop_back();
      out_.nodes[entry_[rule]] = jump(lower(rules_.rules[rule].body, kEndNode));
    }
    for (const std::string& text : rules_.tokens) out_.tokens.push_back({text, false});
    for (const std::string& text : rules_.tokens) out_.tokens.push_back({text, true});
    find_byte_classes();
    return std::move(out_);
  }

 private:
  uint32_t add(const Node& node) {
    rules_.deadline.check();
    if (out_.nodes.size() >= 4 * rules_.limits.symbols) {
      refuse("the grammar has more than " + std::to_string(rules_.limits.symbols) + " symbols", "grammar");
    }
    out_.nodes.push_back(node);
    return static_cast<uint32_t>(out_.nodes.size() - 1);
  }

  Node jump(uint32_t target) {
    out_.targets.push_back(target);
    return {Op::Split, loop_, static_cast<uint32_t>(out_.targets.size() - 1), 1};
  }

  Node split_node(const std::vector<uint32_t>& targets) {
    const auto first = static_cast<uint32_t>(out_.targets.size());
    out_.targets.insert(out_.targets.end(), targets.begin(), targets.end());
    return {Op::Split, loop_, first, static_cast<uint32_t>(targets.size())};
  }
  uint32_t split(const std::vector<uint32_t>& targets) {
    return targets.size() == 1 ? targets[0] : add(split_node(targets));
  }

  uint32_t bytes(const std::vector<Edge>& edges) {
    const auto first = static_cast<uint32_t>(out_.edges.size());
    out_.edges.insert(out_.edges.end(), edges.begin(), edges.end());
    return add({Op::Bytes, loop_, first, static_cast<uint32_t>(edges.size())});
  }

  uint32_t rule_entry(uint32_t rule) {  // lowered later
    if (!called_[rule]) {
      called_[rule] = true;
      entry_[rule] = add({Op::Split, -1, 0, 0});
      pending_.push_back(rule);
    }
    return entry_[rule];
  }

  uint32_t lower(ExprId id, uint32_t next);
  uint32_t lower_kind(ExprId id, uint32_t next);
  uint32_t lower_literal(std::string_view text, uint32_t next);
  uint32_t lower_literals(const std::vector<std::string_view>& texts, uint32_t next);
  uint32_t lower_class(const CharSet& set, uint32_t next);
  uint32_t lower_alternation(const Expr& expr, uint32_t next);
  uint32_t lower_star(ExprId body, uint32_t next);
  uint32_t lower_counted(ExprId id, ExprId body, uint32_t min, uint32_t max, uint32_t next);
  uint32_t lower_rule(uint32_t rule, uint32_t next);
  uint32_t lower_other_key(const std::vector<std::u32string>& keys, uint32_t next);
  uint32_t lower_escapes(const std::vector<char32_t>& without, uint32_t next);

  uint32_t cost(ExprId id) const;
  uint32_t class_cost(const CharSet& set) const;
  void find_byte_classes();

  Rules& rules_;
  const RuleFacts facts_;
  const std::vector<uint8_t> nullable_, productive_;
  Automaton out_;
  std::vector<uint32_t> cost_;   // of each rule: about the nodes that a copy takes
  std::vector<uint32_t> entry_;  // of each rule
  std::vector<bool> called_;
  std::vector<uint32_t> pending_;
  std::unordered_map<ExprId, uint32_t> counted_rules_;  // entries of repetitions that became rules
  int32_t loop_ = -1;                                   // counted loop whose body is being lowered
  int loops_around_ = 0;
  int depth_ = 0;
};

uint32_t Builder::class_cost(const CharSet& set) const {
  return set.empty() || set.ranges().back().high < 0x80 ? 1 : static_cast<uint32_t>(8 + set.ranges().size());
}

uint32_t Builder::cost(ExprId id) const {
  const Expr& expr = rules_.exprs[id];
  rules_.deadline.check();
  uint64_t sum = 1;
  switch (expr.kind) {
    case Kind::Literal: sum = rules_.literals[expr.first].size(); break;
    case Kind::Class: sum = class_cost(rules_.classes[expr.first]); break;
    case Kind::Sequence:
    case Kind::Alternation:
      for (const ExprId kid : rules_.kids(expr)) sum += cost(kid);
      break;
    case Kind::Repeat: {
      const uint64_t body = cost(expr.first), times = expr.max == kUnbounded ? expr.min + 1 : expr.max;
      sum += body * times <= kUnrolled ? body * times : 2 * body;
      break;
    }
    case Kind::Rule: {
      const uint32_t rule = expr.first;
      const bool copied = !facts_.recursive[rule] && !rules_.rules[rule].keep && cost_[rule] <= kSmallRule;
      sum = copied ? cost_[rule] : 1;
      break;
    }
    case Kind::Token: break;
    case Kind::OtherKey: sum = kMaxCost; break;
  }
  return static_cast<uint32_t>(std::min<uint64_t>(sum, kMaxCost));
}

uint32_t Builder::lower(ExprId id, uint32_t next) {
  ++depth_;
  const uint32_t entry = lower_kind(id, next);
  --depth_;
  return entry;
}

uint32_t Builder::lower_kind(ExprId id, uint32_t next) {
  const Expr& expr = rules_.exprs[id];
  switch (expr.kind) {
    case Kind::Literal: return lower_literal(rules_.literals[expr.first], next);
    case Kind::Class: return lower_class(rules_.classes[expr.first], next);
    case Kind::Sequence: {
      const std::span<const ExprId> kids = rules_.kids(expr);
      for (size_t i = kids.size(); i-- > 0;) next = lower(kids[i], next);
      return next;
    }
    case Kind::Alternation: return lower_alternation(expr, next);
    case Kind::Repeat: {
      if (!productive_[expr.first] || expr.max == 0) return next;
      if (expr.max != kUnbounded) return lower_counted(id, expr.first, expr.min, expr.max, next);
      next = lower_star(expr.first, next);
      return expr.min == 0 ? next : lower_counted(id, expr.first, expr.min, expr.min, next);
    }
    case Kind::Rule: return lower_rule(expr.first, next);
    case Kind::Token: {
      const auto negated = static_cast<uint32_t>(expr.min * rules_.tokens.size());
      return add({Op::Token, loop_, expr.first + negated, next});
    }
    case Kind::OtherKey: return lower_other_key(rules_.key_lists[expr.first], next);
  }
  return next;
}

uint32_t Builder::lower_literal(std::string_view text, uint32_t next) {
  for (size_t i = text.size(); i-- > 0;) {
    const auto byte = static_cast<uint8_t>(text[i]);
    next = bytes({{byte, byte, next}});
  }
  return next;
}

// Many literals as a trie: the automaton is in one place of it, not in one of each literal.
uint32_t Builder::lower_literals(const std::vector<std::string_view>& texts, uint32_t next) {
  struct Place {
    std::map<uint8_t, uint32_t> children;
    bool ends = false;
  };
  std::vector<Place> places(1);
  for (const std::string_view text : texts) {
    uint32_t at = 0;
    for (const char c : text) {
      rules_.deadline.check();
      const auto [child, is_new] =
          places[at].children.try_emplace(static_cast<uint8_t>(c), static_cast<uint32_t>(places.size()));
      at = child->second;
      if (is_new) places.emplace_back();
    }
    places[at].ends = true;
  }
  std::vector<uint32_t> nodes(places.size());
  for (size_t i = places.size(); i-- > 0;) {  // children have higher numbers
    std::vector<Edge> edges;
    for (const auto& [byte, child] : places[i].children) edges.push_back({byte, byte, nodes[child]});
    nodes[i] = edges.empty() ? next : bytes(edges);
    if (places[i].ends && !edges.empty()) nodes[i] = split({nodes[i], next});
  }
  return nodes[0];
}

uint32_t Builder::lower_class(const CharSet& set, uint32_t next) {
  const std::vector<std::vector<ByteRange>> sequences = utf8_sequences(set);
  std::map<std::vector<ByteRange>, uint32_t> tails;  // nodes of what follows a first byte, where it is one sequence
  // Sequences [begin, end) agree before `depth`. Equal ranges are adjacent, others are disjoint.
  const auto node_of = [&](const auto& self, size_t begin, size_t end, size_t depth) -> uint32_t {
    std::vector<ByteRange> tail;
    if (end - begin == 1) {
      tail.assign(sequences[begin].begin() + static_cast<int64_t>(depth), sequences[begin].end());
      if (const auto known = tails.find(tail); known != tails.end()) return known->second;
    }
    std::vector<Edge> edges;
    for (size_t i = begin; i < end;) {
      const ByteRange range = sequences[i][depth];
      size_t after = i + 1;
      while (after < end && sequences[after][depth] == range) ++after;
      const uint32_t target = sequences[i].size() == depth + 1 ? next : self(self, i, after, depth + 1);
      edges.push_back({range.low, range.high, target});
      i = after;
    }
    const uint32_t node = bytes(edges);
    if (!tail.empty()) tails.emplace(std::move(tail), node);
    return node;
  };
  return node_of(node_of, 0, sequences.size(), 0);
}

uint32_t Builder::lower_alternation(const Expr& expr, uint32_t next) {
  std::vector<std::string_view> literals;
  std::vector<uint32_t> targets;
  const std::vector<ExprId> kids(rules_.kids(expr).begin(), rules_.kids(expr).end());
  for (const ExprId kid : kids) {
    if (rules_.exprs[kid].kind == Kind::Literal) literals.push_back(rules_.literals[rules_.exprs[kid].first]);
  }
  if (!literals.empty()) targets.push_back(lower_literals(literals, next));
  for (const ExprId kid : kids) {
    if (rules_.exprs[kid].kind == Kind::Literal || !productive_[kid]) continue;
    targets.push_back(lower(kid, next));
  }
  return split(targets);
}

uint32_t Builder::lower_star(ExprId body, uint32_t next) {
  const uint32_t entry = add({Op::Split, loop_, 0, 0});
  ++loops_around_;
  const uint32_t again = lower(body, entry);
  --loops_around_;
  out_.nodes[entry] = split_node({again, next});
  return entry;
}

uint32_t Builder::lower_counted(ExprId id, ExprId body, uint32_t min, uint32_t max, uint32_t next) {
  if (uint64_t{cost(body)} * max <= kUnrolled) {
    uint32_t entry = next;
    for (uint32_t i = max; i-- > 0;) {
      entry = lower(body, entry);
      if (i >= min) entry = split({entry, next});
    }
    return entry;
  }
  const int32_t outer = loop_;
  if (outer >= 0) {  // the counter is in use
    if (!counted_rules_.contains(id)) {
      loop_ = -1;
      counted_rules_[id] = lower_counted(id, body, min, max, kEndNode);
      loop_ = outer;
    }
    return add({Op::Call, loop_, counted_rules_[id], next});
  }
  const auto number = static_cast<uint32_t>(out_.loops.size());
  const bool empty_body = nullable_[body] != 0;
  const uint32_t entry = add({Op::Loop, -1, number, 0});
  out_.loops.push_back({empty_body ? 0 : min, max, 0, next, entry, empty_body});
  loop_ = static_cast<int32_t>(number);
  ++loops_around_;
  const uint32_t first = lower(body, entry);
  --loops_around_;
  loop_ = outer;
  out_.loops[number].body = first;
  return add({Op::Reset, -1, entry, 0});
}

uint32_t Builder::lower_rule(uint32_t rule, uint32_t next) {
  const uint32_t size = cost_[rule];
  const bool small = size <= kSmallRule || (loops_around_ > 0 && size <= kSmallRuleInLoop) ||
                     (facts_.uses[rule] == 1 && size <= kRuleUsedOnce);
  if (small && !facts_.recursive[rule] && !rules_.rules[rule].keep && depth_ < kMaxDepthToCopy &&
      out_.nodes.size() < kMaxNodesCopied) {
    return lower(rules_.rules[rule].body, next);
  }
  return add({Op::Call, loop_, rule_entry(rule), next});
}

// Escapes of JSON as this compiler writes them: one for each character, so that bytes and contents are the same thing.
uint32_t Builder::lower_escapes(const std::vector<char32_t>& without, uint32_t next) {
  std::vector<std::string> texts;
  const auto put = [&](char32_t code, std::string text) {
    if (std::find(without.begin(), without.end(), code) == without.end()) texts.push_back(std::move(text));
  };
  for (char32_t code = 0; code < 0x20; ++code) put(code, json_escape(code));
  put('"', json_escape('"')), put('\\', json_escape('\\'));
  return lower_literals({texts.begin(), texts.end()}, next);
}

uint32_t Builder::lower_other_key(const std::vector<std::u32string>& keys, uint32_t next) {
  struct Place {
    std::map<char32_t, uint32_t> children;
    bool ends = false;
  };
  std::vector<Place> places(1);
  for (const std::u32string& key : keys) {
    uint32_t at = 0;
    for (const char32_t code : key) {
      const auto [child, is_new] = places[at].children.try_emplace(code, static_cast<uint32_t>(places.size()));
      at = child->second;
      if (is_new) places.emplace_back();
    }
    places[at].ends = true;
  }
  const CharSet plain = json_plain_chars();
  const uint32_t rest = add({Op::Split, loop_, 0, 0}), quote = bytes({{'"', '"', next}});
  const uint32_t plain_rest = lower_class(plain, rest), escape_rest = lower_escapes({}, rest);
  out_.nodes[rest] = split_node({plain_rest, escape_rest, quote});
  std::vector<uint32_t> nodes(places.size());
  for (size_t i = places.size(); i-- > 0;) {
    std::vector<uint32_t> targets;
    std::vector<char32_t> escaped;
    CharSet known;
    for (const auto& [code, child] : places[i].children) {
      const std::string escape = json_escape(code);
      std::string text = escape;
      if (escape.empty()) append_utf8(text, code), known.add(code, code);
      if (!escape.empty()) escaped.push_back(code);
      targets.push_back(lower_literal(text, nodes[child]));
    }
    known.normalise();
    targets.push_back(known.empty() ? plain_rest : lower_class(plain.intersection(known.complement()), rest));
    targets.push_back(escaped.empty() ? escape_rest : lower_escapes(escaped, rest));
    if (!places[i].ends) targets.push_back(quote);
    nodes[i] = split(targets);
  }
  return nodes[0];
}

void Builder::find_byte_classes() {
  std::bitset<257> begins;
  begins[0] = true;
  for (const Edge& edge : out_.edges) begins[edge.low] = begins[size_t{edge.high} + 1] = true;
  for (size_t byte = 0; byte < 256; ++byte) {
    if (begins[byte]) out_.class_byte.push_back(static_cast<uint8_t>(byte));
    out_.class_of[byte] = static_cast<uint8_t>(out_.class_byte.size() - 1);
  }
}

}  // namespace

Automaton Automaton::build(Rules& rules) { return Builder(rules).build(); }

}  // namespace strata::text::grammar
