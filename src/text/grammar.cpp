#include "text/grammar.h"

#include <mutex>

#include "text/grammar/expr.h"
#include "text/grammar/gbnf.h"
#include "text/grammar/json_schema.h"
#include "text/grammar/masks.h"

namespace strata::text {

struct Grammar::Shared {
  std::mutex mutex;
  std::shared_ptr<grammar::MaskCache> last;
};

namespace {

std::shared_ptr<const grammar::Automaton> compile(grammar::Rules rules) {
  return std::make_shared<const grammar::Automaton>(grammar::Automaton::build(rules));
}

}  // namespace

Grammar::Grammar(std::shared_ptr<const grammar::Automaton> automaton)
    : automaton_(std::move(automaton)), shared_(std::make_shared<Shared>()) {}

Grammar Grammar::from_gbnf(std::string_view text, const GrammarLimits& limits) {
  return Grammar(compile(grammar::parse_gbnf(text, limits)));
}

Grammar Grammar::from_json_schema(std::string_view text, const GrammarLimits& limits) {
  return Grammar(compile(grammar::compile_json_schema(text, limits)));
}

Grammar Grammar::enclosed_json(std::string_view schema, std::string_view before, std::string_view after, bool several,
                               const GrammarLimits& limits) {
  grammar::Rules rules = grammar::compile_json_schema(schema, limits);
  const uint32_t inner = rules.root, root = rules.add_rule("enclosed");
  const auto one = [&] { return rules.sequence({rules.literal(before), rules.rule_ref(inner), rules.literal(after)}); };
  const grammar::ExprId first = one();
  rules.define(root,
               several ? rules.sequence({first, rules.star(rules.sequence({rules.literal("\n"), one()}))}) : first);
  rules.root = root;
  return Grammar(compile(std::move(rules)));
}

Grammar Grammar::json_object() { return from_json_schema(R"({"type":"object"})"); }

bool Grammar::matches(std::string_view bytes) const {
  grammar::Walker walker(*automaton_);
  grammar::Position position;
  position.begin(walker);
  for (const char c : bytes) {
    const auto byte = static_cast<uint8_t>(c);
    walker.begin_work();
    position.advance(walker, &byte, {});
    position.compact();
    if (position.states.empty() && !position.accepting) return false;
  }
  return position.accepting;
}

GrammarState::GrammarState(const Grammar& grammar, const TokenTrie& trie)
    : automaton_(grammar.automaton_), trie_(trie.shared()), position_(std::make_unique<grammar::Position>()) {
  {
    const std::lock_guard lock(grammar.shared_->mutex);
    std::shared_ptr<grammar::MaskCache>& last = grammar.shared_->last;
    if (last == nullptr || last->trie() != trie_) last = std::make_shared<grammar::MaskCache>(automaton_, trie_);
    cache_ = last;
  }
  cache_->begin(*position_);
}

GrammarState::GrammarState(const GrammarState& other)
    : automaton_(other.automaton_),
      trie_(other.trie_),
      cache_(other.cache_),
      position_(std::make_unique<grammar::Position>(*other.position_)) {}

GrammarState& GrammarState::operator=(const GrammarState& other) {
  if (this != &other) *this = GrammarState(other);
  return *this;
}

GrammarState::GrammarState(GrammarState&&) noexcept = default;
GrammarState& GrammarState::operator=(GrammarState&&) noexcept = default;
GrammarState::~GrammarState() = default;

void GrammarState::allowed_tokens(TokenMask& mask) { cache_->allowed(*position_, mask); }

bool GrammarState::accept(int32_t token) {
  if (token < 0 || token >= trie_->vocabulary) {
    grammar::refuse("id " + std::to_string(token) + " is outside the vocabulary", "grammar");
  }
  if (!dead()) cache_->accept(*position_, token);
  return !dead();
}

bool GrammarState::accept(std::string_view bytes) {
  if (!dead()) cache_->accept(*position_, bytes);
  return !dead();
}

bool GrammarState::accepting() const { return position_->accepting; }
bool GrammarState::finished() const { return position_->accepting && position_->states.empty(); }
bool GrammarState::dead() const { return !position_->accepting && position_->states.empty(); }

}  // namespace strata::text
