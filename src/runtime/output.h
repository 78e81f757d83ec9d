// From chosen tokens to what a reader sees, and the tokens that a grammar allows.
#pragma once

#include <functional>
#include <optional>
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

// The tokens that a grammar allows at each step; everything when there is none.
class Constraint {
 public:
  Constraint() = default;
  Constraint(const text::Grammar& grammar, const text::TokenTrie& trie, bool ignore_end)
      : state_(std::in_place, grammar, trie), ends_(ignore_end ? trie.data().ends : std::vector<int32_t>()) {}

  bool complete() const { return state_ && state_->finished(); }
  bool none() const { return !state_; }  // every token is allowed
  const text::TokenMask* allowed() {
    if (!state_) return nullptr;
    state_->allowed_tokens(mask_);
    for (const int32_t id : ends_) mask_.reset(id);
    return &mask_;
  }
  void accept(int32_t token) {
    if (state_) state_->accept(token);
  }

 private:
  std::optional<text::GrammarState> state_;
  std::vector<int32_t> ends_;  // tokens not to choose: the text goes on past them
  text::TokenMask mask_;
};

}  // namespace strata
