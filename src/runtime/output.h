// From chosen tokens to what a reader sees, and the tokens that a grammar allows.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/request.h"
#include "text/stream.h"

namespace strata {

// Token bytes to whole characters, up to a stop string.
class Output {
 public:
  Output(const GenerateRequest& request, const GenerateCallbacks& callbacks)
      : stops_(request.stop), show_(callbacks.text) {}
  bool push(std::string_view bytes) {  // false: a stop string was met, or the reader has enough
    return release(stops_.push(characters_.push(bytes))) && !stops_.stopped();
  }
  int32_t matched_stop() const { return stops_.matched(); }  // its number; -1: none
  void finish() {
    release(stops_.push(characters_.finish()));
    if (!stops_.stopped()) release(stops_.finish());
  }

 private:
  bool release(const std::string& text) const { return !show_ || text.empty() || show_(text); }
  text::Utf8Stream characters_;
  text::StopStrings stops_;
  std::function<bool(std::string_view)> show_;
};

// The tokens that a grammar allows at each step; everything when there is none, and where it does not count.
class Constraint {
 public:
  Constraint() = default;
  Constraint(const GenerateRequest& request, const text::TokenTrie& trie)
      : trie_(trie.shared()),
        grammar_(request.grammar),
        state_(std::in_place, *request.grammar, trie),
        again_(request.grammar_again),
        waiting_(!request.grammar_after.empty()),
        after_({request.grammar_after}),
        after_text_{request.grammar_after},
        ends_(request.ignore_end ? trie_->ends : std::vector<int32_t>()) {}

  bool complete() const { return state_ && !waiting_ && !again_ && state_->finished(); }
  bool none() const { return !state_; }  // every token is allowed
  const text::TokenMask* allowed() {
    if (!state_ || waiting_) return nullptr;
    state_->allowed_tokens(mask_);
    for (const int32_t id : ends_) mask_.reset(id);
    return &mask_;
  }
  void accept(int32_t token) {
    if (state_ && waiting_)
      look_for_beginning(trie_->bytes[static_cast<size_t>(token)]);
    else if (state_)
      state_->accept(token);
    if (!state_ || waiting_ || !again_ || !state_->finished()) return;
    waiting_ = true;
    after_ = text::StopStrings(after_text_);
  }

 private:
  void look_for_beginning(std::string_view bytes) {
    for (size_t i = 0; i < bytes.size(); ++i) {
      after_.push(bytes.substr(i, 1));
      if (!after_.stopped()) continue;
      waiting_ = false;
      state_.emplace(*grammar_, text::TokenTrie(trie_));
      state_->accept(bytes.substr(i + 1));
      return;
    }
  }

  std::shared_ptr<const text::TokenTrie::Data> trie_;
  std::optional<text::Grammar> grammar_;
  std::optional<text::GrammarState> state_;
  bool again_ = false, waiting_ = false;
  text::StopStrings after_{{}};
  std::vector<std::string> after_text_;
  std::vector<int32_t> ends_;  // tokens not to choose: the text goes on past them
  text::TokenMask mask_;
};

}  // namespace strata
