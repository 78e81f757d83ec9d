#include "runtime/slot.h"

#include <algorithm>

#include "base/error.h"

namespace strata {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Drafts are not worth failing for: false when the pool has no memory for them.
template <class Work>
bool if_memory_allows(Work&& work) {
  try {
    work();
    return true;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Memory) throw;
    return false;
  }
}

// A token that is none would fail all that run beside it.
std::vector<int32_t> checked_drafts(std::vector<int32_t> drafts, int wanted, int64_t vocabulary) {
  drafts.resize(std::min(drafts.size(), static_cast<size_t>(wanted)));
  for (const int32_t token : drafts)
    if (token < 0 || token >= vocabulary)
      throw Error(ErrorKind::Argument, "the drafter proposes token " + std::to_string(token) +
                                           ", outside the vocabulary of " + std::to_string(vocabulary));
  return drafts;
}

bool has_mtp(const Forward& forward) { return forward.spec().mtp_layers > 0; }

}  // namespace

const char* to_string(FinishReason reason) {
  switch (reason) {
    case FinishReason::EndOfText: return "end of text";
    case FinishReason::StopString: return "stop string";
    case FinishReason::Length: return "length";
    case FinishReason::Repetition: return "repetition";
    case FinishReason::MemoryFloor: return "memory floor";
    case FinishReason::Interrupted: return "interrupted";
  }
  return "unknown";
}

Slot::Slot(const SlotContext& context, GenerateRequest request, const GenerateCallbacks& callbacks, Sequence sequence,
           Constraint constraint, std::vector<int64_t> checkpoints)
    : context_(context),
      request_(std::move(request)),
      callbacks_(callbacks),
      sequence_(std::move(sequence)),
      sampler_(request_.sampler,
               [tokenizer = context.tokenizer](int32_t id) { return !tokenizer || tokenizer->may_be_sampled(id); }),
      constraint_(std::move(constraint)),
      output_(request_, callbacks_),
      history_(request_.prompt),
      checkpoints_(std::move(checkpoints)),
      length_(request_.draft == DraftKind::None && !request_.drafter ? 0 : request_.draft_max),
      start_(Clock::now()) {
  if (request_.prompt.empty()) throw Error(ErrorKind::Argument, "the prompt is empty: give text to continue");
  if (sequence_.length() >= prompt_size())
    throw Error(ErrorKind::Argument, "the last token of the prompt has to be run: the sequence holds all of it");
  result_.cached_tokens = sequence_.length();
  std::erase_if(checkpoints_, [this](int64_t at) { return at <= sequence_.length() || at > prompt_size(); });
  const bool wants_mtp = request_.draft == DraftKind::Mtp || request_.draft == DraftKind::Auto;
  if (request_.draft == DraftKind::Mtp && !has_mtp(context.forward))
    throw Error(ErrorKind::Model, "this model has no MTP block to draft with");
  if (wants_mtp && has_mtp(context.forward) && !request_.drafter)
    mtp_ = std::make_unique<MtpDrafter>(context.forward, sequence_);
  else if (request_.draft != DraftKind::None && !request_.drafter)
    lookup_.emplace().append(history_);
  if (request_.max_tokens == 0 && !request_.embed) stop(FinishReason::Length);
}

bool Slot::interrupted() const {
  return callbacks_.interrupted != nullptr && callbacks_.interrupted->load(std::memory_order_relaxed);
}

void Slot::stop(FinishReason reason) {
  if (done_) return;
  done_ = true;
  result_.reason = reason;
}

// Drafts that the request, the context and the sequence have room for.
int Slot::draft_room() const {
  int64_t room = std::min<int64_t>(kMaxDrafts, sequence_.max_window() - 1);
  room = std::min(room, sequence_.capacity() - sequence_.length() - 1);
  if (request_.max_tokens >= 0)
    room = std::min(room, request_.max_tokens - static_cast<int64_t>(result_.tokens.size()) - 1);
  return static_cast<int>(std::max<int64_t>(room, 0));
}

void Slot::draft() {
  drafts_.clear();
  if (!drafts()) return;
  const int worth = request_.drafter ? request_.draft_max : std::max(length_.next(), request_.draft_min);
  const int wanted = std::min(worth, draft_room());
  if (wanted < 1) return;
  const ProfileSpan span(context_.forward.queue().profiler, Stage::Draft, wanted);
  if (request_.drafter)
    drafts_ = checked_drafts(request_.drafter(history_, wanted), wanted, context_.forward.spec().vocabulary);
  else if (!mtp_)
    drafts_ = lookup_->propose(wanted);
  else if (!if_memory_allows([&] { drafts_ = mtp_->propose(history_, wanted); }))
    drafts_.clear();
}

int64_t Slot::next_checkpoint() const { return checkpoints_.empty() ? prompt_size() : checkpoints_.front(); }

void Slot::drop_checkpoints() {
  checkpoints_.clear();
  copies_.clear();
}

Sequence Slot::take_sequence() {
  if (mtp_) mtp_->drop_guesses();
  mtp_.reset();
  return std::move(sequence_);
}

Segment Slot::next(int64_t limit) {
  step_start_ = Clock::now();
  first_ = sequence_.length();
  Segment segment;
  segment.sequence = &sequence_;
  int64_t wanted = 1;  // rows with logits
  if (in_prompt()) {
    const int64_t count = std::min(limit, next_checkpoint() - first_);
    segment.tokens = std::span(history_).subspan(static_cast<size_t>(first_), static_cast<size_t>(count));
    if (first_ + count < prompt_size() || request_.embed) wanted = 0;
    if (request_.embed) {
      const int64_t width = context_.forward.spec().hidden;
      hidden_.resize(static_cast<size_t>(count * width));
      segment.hidden = make_f32(hidden_.data(), {count, width});
    }
  } else {
    draft();
    rows_.assign(1, history_.back());
    rows_.insert(rows_.end(), drafts_.begin(), drafts_.end());
    segment.tokens = rows_;
    segment.certain = 1;
    wanted = static_cast<int64_t>(rows_.size());
  }
  const int64_t vocabulary = context_.forward.spec().vocabulary;
  const bool named = takes_likeliest();
  greedy_.assign(static_cast<size_t>(named ? wanted : 0), 0);
  logits_.resize(static_cast<size_t>(named ? 0 : wanted * vocabulary));
  if (wanted > 0 && named) segment.greedy = make_tensor(greedy_.data(), DType::I32, {wanted, 1});
  if (wanted > 0 && !named) segment.logits = make_f32(logits_.data(), {wanted, vocabulary});
  if (mtp_) segment.tap = mtp_->taps(static_cast<int64_t>(segment.tokens.size()));
  return segment;
}

void Slot::consume_prompt() {
  if (first_ >= prompt_size()) return;
  if (mtp_) {
    mtp_->keep(first_, sequence_.length() - first_);
    if (!if_memory_allows([&] { mtp_->feed(history_); })) mtp_->skip();
  }
  if (in_prompt() && sequence_.length() == next_checkpoint()) {
    checkpoints_.erase(checkpoints_.begin());
    copies_.push_back(sequence_);
  }
  if (callbacks_.prompt_progress) callbacks_.prompt_progress(sequence_.length(), prompt_size());
  if (request_.embed && callbacks_.hidden) callbacks_.hidden(hidden_);
  if (in_prompt()) return;
  result_.prompt_seconds = seconds_since(start_);
  output_start_ = Clock::now();
  if (constraint_.complete() || request_.embed) stop(FinishReason::EndOfText);
}

void Slot::choose() {
  if (!chooses()) return;
  const int held = choose_tokens();
  if (first_ < prompt_size()) return finish_if_full();
  const int64_t kept = 1 + held;
  if (drafted() > 0) {
    const ProfileSpan span(context_.forward.queue().profiler, Stage::Commit, kept);
    if (held < drafted()) sequence_.truncate(first_ + kept);
  }
  if (mtp_) mtp_->keep(first_, kept);
  if (drafts()) length_.observe(drafted(), held, seconds_since(step_start_));
  finish_if_full();
}

void Slot::finish_if_full() {
  if (sequence_.length() == sequence_.capacity()) stop(FinishReason::Length);
}

// On an accelerator logits would have to come to the host.
bool Slot::takes_likeliest() const {
  return context_.forward.queue().accelerator() != nullptr && sampler_.takes_likeliest() && constraint_.none() &&
         !callbacks_.logits;
}

int32_t Slot::likeliest(size_t row) const {
  const int32_t token = greedy_[row];
  if (token <= -2) throw not_finite(-2 - int64_t{token}, history_.size());
  if (token < 0) throw Error(ErrorKind::Model, "no token may be sampled");
  return token;
}

// A draft holds when the sampler chooses the same token from the row before it: as if there were no drafts.
int Slot::choose_tokens() {
  const auto vocabulary = static_cast<size_t>(context_.forward.spec().vocabulary);
  const size_t rows = greedy_.empty() ? logits_.size() / vocabulary : greedy_.size();
  for (size_t row = 0; row < rows; ++row) {
    int32_t token = 0;
    if (greedy_.empty()) {
      const std::span<float> logits(logits_.data() + row * vocabulary, vocabulary);
      if (callbacks_.logits) callbacks_.logits(logits);
      const ProfileSpan span(context_.forward.queue().profiler, "sample", "host");
      token = sampler_.sample(logits, history_, constraint_.allowed());
    } else {
      token = likeliest(row);
    }
    constraint_.accept(token);
    if (!take(token)) return static_cast<int>(row);
    if (row + 1 == rows || drafts_[row] != token) return static_cast<int>(row);
  }
  return 0;
}

// Adds a chosen token; false when it is the last one.
bool Slot::take(int32_t token) {
  repeats_ = !result_.tokens.empty() && token == result_.tokens.back() ? repeats_ + 1 : 1;
  history_.push_back(token);
  result_.tokens.push_back(token);
  if (callbacks_.token) callbacks_.token(token);
  if (lookup_) lookup_->append({&token, 1});
  const text::Tokenizer* tokenizer = context_.tokenizer;
  if (tokenizer != nullptr && !request_.ignore_end && tokenizer->ends_generation(token))
    stop(FinishReason::EndOfText);
  else if (tokenizer != nullptr && !output_.push(tokenizer->bytes(token)))
    stop(FinishReason::StopString);
  else if (constraint_.complete())
    stop(FinishReason::EndOfText);
  else if (request_.repeat_limit > 0 && repeats_ >= request_.repeat_limit)
    stop(FinishReason::Repetition);
  else if (request_.max_tokens >= 0 && static_cast<int64_t>(result_.tokens.size()) >= request_.max_tokens)
    stop(FinishReason::Length);
  return !done_;
}

double Slot::output_seconds() const { return output_start_ == Clock::time_point{} ? 0 : seconds_since(output_start_); }

GenerateResult Slot::result() {
  if (output_start_ != Clock::time_point{}) result_.output_seconds = seconds_since(output_start_);
  if (output_start_ == Clock::time_point{}) result_.prompt_seconds = seconds_since(start_);
  if (output_start_ != Clock::time_point{} && result_.reason != FinishReason::StopString) output_.finish();
  result_.stop = output_.matched_stop();
  result_.drafts = length_.positions();
  return std::move(result_);
}

}  // namespace strata
