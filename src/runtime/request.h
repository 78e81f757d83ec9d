// What the engine is asked for, and what it gives back.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/draft.h"
#include "runtime/sampler.h"
#include "text/grammar.h"

namespace strata {

enum class FinishReason {
  EndOfText,  // the model ended its reply
  StopString,
  Length,       // as many tokens as asked for, or the context is full
  Repetition,   // the same token as often in a row as the request allows
  MemoryFloor,  // free memory fell below the floor
  Interrupted,  // the caller asked to stop; what was generated is in the result
};
const char* to_string(FinishReason reason);

enum class DraftKind {
  None,
  Lookup,  // what followed the same tokens before
  Mtp,     // the model's MTP block
  Auto,    // Mtp where the model has one, else Lookup
};

struct GenerateRequest {
  std::vector<int32_t> prompt;
  int64_t max_tokens = -1;  // -1: until the model ends or the context is full
  int64_t context = 0;      // positions; 0: what prompt and max_tokens need, at most what the model was trained for
  SamplerOptions sampler;
  std::vector<std::string> stop;
  bool ignore_end = false;               // go on past the end of the text
  std::optional<text::Grammar> grammar;  // the output is a text of it, or the beginning of one; it ends when complete
  std::string grammar_after = {};        // it counts from behind this text on; empty: from the beginning
  bool grammar_again = false;            // and anew each time that this text comes again; the output goes on behind it
  int64_t repeat_limit = 0;              // equal tokens in a row that end the output; 0: no limit
  DraftKind draft = DraftKind::None;     // changes speed alone
  int draft_max = kMaxDrafts;            // tokens of a draft at most
  int draft_min = 0;                     // and at least where there is room for them, whatever they are worth
  // Instead of `draft`: proposes at most `limit` tokens that may follow the text; further ones are not run.
  // Error{Argument} for one outside the vocabulary.
  std::function<std::vector<int32_t>(std::span<const int32_t> text, int limit)> drafter;
  bool embed = false;         // read the prompt, all of it, for callbacks.hidden, and generate nothing
  int64_t shared_prefix = 0;  // first tokens of the prompt that other prompts are likely to begin with
};

struct GenerateCallbacks {
  std::function<bool(std::string_view)> text;  // bytes ready to be shown; false ends the output, as a stop string does
  std::function<void(int64_t done, int64_t total)> prompt_progress;
  // With `embed`: final hidden states [n, H] of the next n tokens of the prompt. How it is cut changes no bit of them.
  std::function<void(std::span<const float>)> hidden;
  // The model's logits [V] that each token is chosen from, before penalties and grammar.
  std::function<void(std::span<const float>)> logits;
  std::function<void(int32_t token)> token;        // each that is chosen, after its logits and before its text
  const std::atomic<bool>* interrupted = nullptr;  // checked between steps
};

struct GenerateResult {
  std::vector<int32_t> tokens;
  FinishReason reason = FinishReason::Length;
  int32_t stop = -1;                              // number of the stop string that was met
  int64_t cached_tokens = 0;                      // of the prompt, that were not run: an earlier sequence held them
  double prompt_seconds = 0, output_seconds = 0;  // output: after the first token, which the prompt's last logits give
  std::array<DraftLength::Position, kMaxDrafts> drafts{};  // by position in the draft
};

}  // namespace strata
