// One request in progress on one sequence: says what to run next and takes what came out. A scheduler runs the forward
// pass.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "model/forward.h"
#include "runtime/mtp_drafter.h"
#include "runtime/output.h"
#include "runtime/request.h"
#include "text/tokenizer.h"

namespace strata {

// What slots share.
struct SlotContext {
  Forward& forward;
  const text::Tokenizer* tokenizer;  // null: the model has none
};

class Slot {
 public:
  // The sequence may hold a prefix of the prompt already, but not all of it. It is copied at the lengths `checkpoints`
  // (ascending) while the prompt is read. Error{Argument} for an empty prompt.
  Slot(const SlotContext& context, GenerateRequest request, const GenerateCallbacks& callbacks, Sequence sequence,
       Constraint constraint = {}, std::vector<int64_t> checkpoints = {});
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;

  bool done() const { return done_; }
  bool in_prompt() const { return sequence_.length() < prompt_size(); }
  bool generates() const { return !request_.embed; }
  int64_t shared_prefix() const { return request_.shared_prefix; }
  int64_t prompt_size() const { return static_cast<int64_t>(request_.prompt.size()); }
  const Sequence& sequence() const { return sequence_; }
  // What the sequence holds when the slot is done: its tokens are the first of history().
  Sequence take_sequence();
  std::vector<Sequence> take_checkpoints() { return std::move(copies_); }
  void drop_checkpoints();  // those taken and those to come: memory is needed elsewhere
  bool has_checkpoints() const { return !copies_.empty(); }
  const std::vector<int32_t>& history() const { return history_; }  // the prompt and what was chosen

  // The rows that come next: prompt tokens, at most `limit` of them, or the newest token with its drafts. Valid until
  // choose(), which has to follow once they were run.
  Segment next(int64_t limit);
  int drafted() const { return static_cast<int>(drafts_.size()); }
  // Takes what the rows of next() gave, in two steps: what belongs to the prompt; then tokens from the logits, when
  // there are any, and rejected drafts are taken back. Error{Model} for logits that are not finite.
  void consume_prompt();
  bool chooses() const { return !in_prompt() && !done_; }
  void choose();

  const std::array<DraftLength::Position, kMaxDrafts>& draft_positions() const { return length_.positions(); }
  int64_t cached() const { return result_.cached_tokens; }
  int64_t chosen() const { return static_cast<int64_t>(result_.tokens.size()); }
  double output_seconds() const;  // since the first token; 0 before it

  void stop(FinishReason reason);  // at once, between steps
  bool interrupted() const;        // the caller asked to stop
  GenerateResult result();         // when done

 private:
  int64_t next_checkpoint() const;  // the end of the prompt when there is none
  bool takes_likeliest() const;     // which the forward pass names: no logits are needed
  int32_t likeliest(size_t row) const;
  int choose_tokens();  // how many drafts held
  bool take(int32_t token);
  void finish_if_full();
  bool drafts() const { return mtp_ || lookup_ || request_.drafter; }
  void draft();
  int draft_room() const;

  const SlotContext context_;
  const GenerateRequest request_;
  const GenerateCallbacks callbacks_;
  Sequence sequence_;
  Sampler sampler_;
  Constraint constraint_;
  Output output_;
  std::vector<int32_t> history_, drafts_, rows_;
  std::vector<float> logits_, hidden_;
  std::vector<int32_t> greedy_;       // instead of logits
  std::vector<int64_t> checkpoints_;  // still to come
  std::vector<Sequence> copies_;
  std::optional<PromptLookup> lookup_;
  std::unique_ptr<MtpDrafter> mtp_;
  DraftLength length_;
  GenerateResult result_;
  bool done_ = false;
  int64_t first_ = 0;  // length of the sequence before the rows of next()
  int64_t repeats_ = 0;
  std::chrono::steady_clock::time_point start_, output_start_, step_start_;
};

}  // namespace strata
