// Constrained output (docs/grammar.md): a GBNF grammar or a JSON schema becomes a pushdown automaton over bytes, which
// says at each step which tokens may come next. Everything is bounded; errors are Error{Argument} that name the limit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "text/token_trie.h"

namespace strata::text {

struct GrammarLimits {
  size_t text_bytes = size_t{1} << 20;
  size_t group_nesting = 200;
  size_t schema_depth = 64;
  size_t ref_chain = 64;
  size_t rules = 10'000;
  size_t symbols = 1'000'000;  // with every repetition written out
  size_t repetition = 2'000;   // one bound, and the product of nested ones
  size_t pattern_bytes = 4096;
  size_t pattern_nesting = 100;
  double compile_seconds = 2;
  size_t alive_states = 10'000;  // of the automaton at one byte
};

namespace grammar {
struct Automaton;
class MaskCache;
struct Position;
}  // namespace grammar

// Immutable, cheap to copy, shareable between threads.
class Grammar {
 public:
  static Grammar from_gbnf(std::string_view text, const GrammarLimits& limits = {});
  static Grammar from_json_schema(std::string_view text, const GrammarLimits& limits = {});
  static Grammar json_object();  // any JSON object
  // JSON of the schema between two texts, once, or several times with a newline between.
  static Grammar enclosed_json(std::string_view schema, std::string_view before, std::string_view after, bool several,
                               const GrammarLimits& limits = {});

  // For tests and messages: whether the bytes as a whole are a text of the grammar.
  bool matches(std::string_view bytes) const;

 private:
  friend class GrammarState;
  explicit Grammar(std::shared_ptr<const grammar::Automaton> automaton);
  std::shared_ptr<const grammar::Automaton> automaton_;
  // Masks of the vocabulary that was used last, shared by all states: requests with the same schema profit.
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

// How far a text has come in a grammar. A copy goes its own way (speculative windows). One thread at a time each.
class GrammarState {
 public:
  // Error{Argument} when the grammar names a token that the vocabulary lacks.
  GrammarState(const Grammar& grammar, const TokenTrie& trie);
  GrammarState(const GrammarState& other);
  GrammarState& operator=(const GrammarState& other);
  GrammarState(GrammarState&&) noexcept;
  GrammarState& operator=(GrammarState&&) noexcept;
  ~GrammarState();

  // The tokens that may come next. Tokens that end the generation are among them only where the text may end.
  // Error{Argument} when a grammar is so ambiguous that a limit of work is passed.
  void allowed_tokens(TokenMask& mask);

  // Goes on; false when the grammar does not allow it, and the state is dead from then on.
  bool accept(int32_t token);
  bool accept(std::string_view bytes);

  bool accepting() const;  // the text may end here
  bool finished() const;   // it can only end here
  bool dead() const;       // no text of the grammar begins with what was accepted

 private:
  std::shared_ptr<const grammar::Automaton> automaton_;
  std::shared_ptr<const TokenTrie::Data> trie_;
  std::shared_ptr<grammar::MaskCache> cache_;
  std::unique_ptr<grammar::Position> position_;
};

}  // namespace strata::text
