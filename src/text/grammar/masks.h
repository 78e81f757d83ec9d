// Token masks. What a token does inside the rule where the automaton stands does not depend on the callers of that
// rule: it is found once per place by a walk over the vocabulary and kept. Only tokens that run past the end of the
// rule are followed on the actual stack, each time.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "text/grammar.h"
#include "text/grammar/walk.h"

namespace strata::text::grammar {

// Where a text stands. States are closed: each reads a byte or a token.
struct Position {
  Frames frames;
  std::vector<State> states;
  bool accepting = false;

  void begin(Walker& walker);
  // One byte or token on; `extra` states join those that the byte leads to.
  void advance(Walker& walker, const uint8_t* byte, std::vector<State> extra);
  void compact();  // drops frames that no state needs, once in a while

 private:
  void set(Walker& walker, const std::vector<State>& from);
  size_t frames_kept_ = 0;
};

// The masks of one automaton and one vocabulary, shared by all states. Thread safe.
class MaskCache {
 public:
  // Error{Argument} when the automaton names a token that is no user-defined token of the vocabulary.
  MaskCache(std::shared_ptr<const Automaton> automaton, std::shared_ptr<const TokenTrie::Data> trie);

  void allowed(Position& position, TokenMask& mask);
  void accept(Position& position, int32_t token);
  void accept(Position& position, std::string_view bytes);
  void begin(Position& position);

  const std::shared_ptr<const TokenTrie::Data>& trie() const { return trie_; }

 private:
  struct Need {
    uint16_t rounds;
    int32_t id;
  };
  struct Leave {
    uint32_t trie_node;
    uint16_t rounds;
  };
  // Of one place, its callers unknown. Where the place is inside a counted loop, tokens are followed as if the loop had
  // no upper bound, and each comes with the rounds that it needs.
  struct LocalMask {
    std::vector<int32_t> few;  // allowed tokens, or, if they are many:
    TokenMask many;
    std::vector<Need> needs;    // tokens that begin new rounds, most rounds first
    std::vector<Leave> leaves;  // the rule ends here and longer tokens go on
    size_t bytes() const;
  };

  const LocalMask& local(const State& state);
  LocalMask walk_locally(const State& state, int64_t open_loop);
  void add_local(const LocalMask& local, uint32_t rounds_left, TokenMask& mask);
  template <class OnNode>
  void walk(uint32_t from, SetCache& sets, int32_t set, const OnNode& on_node);
  uint32_t rounds_left(const State& state) const;

  const std::shared_ptr<const Automaton> automaton_;
  const std::shared_ptr<const TokenTrie::Data> trie_;
  std::vector<TokenMask> token_masks_;  // of the automaton's token edges

  std::mutex mutex_;  // of all below
  Walker walker_;
  std::unordered_map<uint64_t, LocalMask> locals_;
  size_t local_bytes_ = 0;
  std::vector<int32_t> path_;
  TokenMask scratch_;
};

}  // namespace strata::text::grammar
