#include "server/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace strata::server {
namespace {

double seconds_between(std::chrono::steady_clock::time_point a, std::chrono::steady_clock::time_point b) {
  return std::chrono::duration<double>(b - a).count();
}

// Log-probabilities of one row of logits.
TokenScore score_of(const std::vector<float>& logits, int32_t token, int top) {
  const float best = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - best);
  const double shift = best + std::log(sum);
  const auto logprob = [&](int32_t id) { return static_cast<float>(logits[static_cast<size_t>(id)] - shift); };
  TokenScore score{token, logprob(token), {}};
  if (top == 0) return score;
  std::vector<int32_t> ids(logits.size());
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i);
  const auto end = ids.begin() + std::min<int64_t>(top, static_cast<int64_t>(ids.size()));
  std::partial_sort(ids.begin(), end, ids.end(), [&](int32_t a, int32_t b) {
    const float x = logits[static_cast<size_t>(a)], y = logits[static_cast<size_t>(b)];
    return x > y || (x == y && a < b);
  });
  for (auto id = ids.begin(); id != end; ++id) score.top.emplace_back(*id, logprob(*id));
  return score;
}

}  // namespace

struct Generator::Running {
  std::shared_ptr<Ticket> ticket;
  int choice = 0;
  int64_t id = 0;
  int slot = -1;  // shown under this number; -1: waits
  std::optional<ReplyStream> reply;
  std::optional<Pooler> pooler;
  HeldSequence held;
  bool uses_held = false, too_slow = false, enough = false;
  std::vector<std::unique_ptr<Running>> followers;  // other choices of the same prompt, until it is read
  std::vector<float> logits;
  std::vector<TokenScore> scores;
  int64_t prompt_done = -1;  // -1: not begun
  EngineTimes times;         // when it came
  Clock::time_point last_token{};

  const Choice& asked() const { return ticket->choices[static_cast<size_t>(choice)]; }
  std::vector<TokenScore> take_scores() { return std::exchange(scores, {}); }
};

Generator::Generator(const GeneratorOptions& options, Load load, Metrics& metrics, Log& log)
    : options_(options), load_(std::move(load)), metrics_(metrics), log_(log), thread_([this] { run(); }) {}

Generator::~Generator() {
  stop(0);
  if (thread_.joinable()) thread_.join();
}

std::exception_ptr Generator::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

EngineView Generator::view() const {
  const std::lock_guard lock(mutex_);
  return view_;
}

std::shared_ptr<Ticket> Generator::submit(std::string id, Api api, std::vector<Choice> choices) {
  auto ticket = std::make_shared<Ticket>();
  ticket->id = std::move(id);
  ticket->api = api;
  ticket->arrival = Clock::now();
  ticket->choices = std::move(choices);
  const auto count = static_cast<int64_t>(ticket->choices.size());
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || state_ != State::Ready)
      throw RequestError(503, "", stopping_ ? "the server is stopping" : "the model is not loaded yet");
    const int64_t room = options_.slots + options_.queue;
    if (count > room)
      throw RequestError(400, "", fmt::format("asks for {} texts, this server takes {} at a time", count, room), "n");
    if (open_ + count > room) {
      RequestError error(429, "", fmt::format("the queue is full: {} requests run or wait, try again later", open_));
      error.retry_after = 1;
      throw error;
    }
    open_ += count;
    submitted_.push_back(ticket);
  }
  metrics_.requested();
  wake_.notify_all();
  return ticket;
}

void Generator::cancel(const std::shared_ptr<Ticket>& ticket) {
  if (ticket->cancelled.exchange(true)) return;
  {
    const std::lock_guard lock(mutex_);
    cancelled_.push_back(ticket);
  }
  wake_.notify_all();
}

void Generator::stop(double seconds) {
  {
    const std::lock_guard lock(mutex_);
    const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    deadline_ = stopping_ ? std::min(deadline_, end) : end;
    stopping_ = true;
    if (state_ == State::Ready) state_ = State::Stopping;
  }
  wake_.notify_all();
  if (thread_.joinable() && thread_.get_id() != std::this_thread::get_id()) thread_.join();
}

void Generator::run() {
  try {
    engine_ = load_();
    scheduler_ = std::make_unique<Scheduler>(*engine_, SchedulerOptions{.slots = options_.slots, .micro_batch = 0});
    if (engine_->has_tokenizer()) engine_->token_trie();  // not while requests wait for it
    update_view();
    const std::lock_guard lock(mutex_);
    ready_engine_ = engine_.get();
    if (state_ == State::Loading) state_ = stopping_ ? State::Stopping : State::Ready;
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
    state_ = State::Failed;
    return;
  }
  work();
}

void Generator::work() {
  while (take_inbox()) {
    if (scheduler_->idle()) continue;
    prompt_step_ = output_step_ = 0;
    try {
      scheduler_->step();
    } catch (const std::exception& error) {
      log_.error(fmt::format("a step failed: {}", error.what()));
      fail_all(ErrorKind::Device, error.what());
    }
    over_.clear();
    update_view();
    metrics_.stepped(prompt_step_, output_step_, gauges());
  }
  fail_all(ErrorKind::Interrupted, "the server is stopping");
  update_view();
}

bool Generator::take_inbox() {
  std::vector<std::shared_ptr<Ticket>> submitted, cancelled;
  {
    std::unique_lock lock(mutex_);
    if (scheduler_->idle())
      wake_.wait(lock, [this] { return !submitted_.empty() || !cancelled_.empty() || stopping_; });
    submitted.swap(submitted_);
    cancelled.swap(cancelled_);
    if (stopping_ && submitted.empty() && (scheduler_->idle() || Clock::now() >= deadline_)) return false;
  }
  for (const auto& ticket : submitted) start(ticket);
  for (const auto& ticket : cancelled) forget(ticket.get());
  if (!cancelled.empty()) {
    update_view();
    metrics_.stepped(0, 0, gauges());
  }
  return true;
}

void Generator::start(const std::shared_ptr<Ticket>& ticket) {
  std::vector<std::unique_ptr<Running>> made;
  for (size_t i = 0; i < ticket->choices.size(); ++i) {
    auto running = std::make_unique<Running>();
    running->ticket = ticket;
    running->choice = static_cast<int>(i);
    made.push_back(std::move(running));
  }
  // Choices of one prompt go on from what the first has read.
  const std::vector<int32_t>& prompt = ticket->choices.front().generate.prompt;
  const bool reads_once = !ticket->choices.front().pooling;  // what was read has no hidden states
  const bool long_prompt =
      reads_once && static_cast<int64_t>(prompt.size()) > kCheckpointStep && engine_->prompt_cache() != nullptr;
  for (size_t i = made.size(); long_prompt && i-- > 1;) {
    if (ticket->choices[i].generate.prompt != prompt) continue;
    made.front()->followers.push_back(std::move(made[i]));
    made.erase(made.begin() + static_cast<int64_t>(i));
  }
  for (auto& running : made) add(std::move(running));
}

void Generator::add(std::unique_ptr<Running> running) {
  Running& one = *running;
  const Choice& choice = one.asked();
  one.times = times_of(*scheduler_, engine_->queue().profiler);
  if (choice.reply)
    one.reply.emplace(*choice.reply, choice.stop, [&one](const text::ReplyEvent& event) {
      const bool taken = one.ticket->channel.push({.choice = one.choice, .reply = event, .scores = one.take_scores()});
      one.too_slow = one.too_slow || !taken;
      if (event.kind == text::ReplyEvent::Kind::CallEnd && one.asked().one_call) one.enough = true;
    });
  if (choice.pooling) one.pooler.emplace(*choice.pooling, engine_->model().spec().hidden);
  try {
    one.id = scheduler_->add(choice.generate, callbacks_of(one), one.uses_held ? &one.held : nullptr);
    running_[one.id] = std::move(running);
  } catch (const Error& error) {
    fail(one, error.kind(), error.what());
    over_.push_back(std::move(running));
  }
}

ScheduledCallbacks Generator::callbacks_of(Running& running) {
  Running* const one = &running;
  ScheduledCallbacks callbacks;
  callbacks.text = [this, one](std::string_view bytes) { return on_text(*one, bytes); };
  callbacks.prompt_progress = [this, one](int64_t done, int64_t total) { on_progress(*one, done, total); };
  callbacks.token = [this, one](int32_t token) { on_token(*one, token); };
  if (running.asked().pooling) callbacks.hidden = [one](std::span<const float> rows) { one->pooler->add(rows); };
  if (running.asked().top_logprobs >= 0)
    callbacks.logits = [one](std::span<const float> logits) { one->logits.assign(logits.begin(), logits.end()); };
  callbacks.finished = [this, one](int64_t id, GenerateResult result) {
    on_finished(*one, std::move(result));
    over_.push_back(std::move(running_[id]));
    running_.erase(id);
  };
  callbacks.failed = [this, one](int64_t id, const Error& error) {
    fail(*one, error.kind(), error.what());
    over_.push_back(std::move(running_[id]));
    running_.erase(id);
  };
  return callbacks;
}

void Generator::add_followers(Running& first, const Slot* slot, int64_t done) {
  const std::vector<int32_t>& prompt = first.asked().generate.prompt;
  for (auto& follower : std::exchange(first.followers, {})) {
    if (slot != nullptr && done < static_cast<int64_t>(prompt.size())) {
      follower->held = {{prompt.begin(), prompt.begin() + done}, slot->sequence()};
      follower->uses_held = true;
    }
    add(std::move(follower));
  }
}

void Generator::on_progress(Running& running, int64_t done, int64_t total) {
  const Slot* slot = scheduler_->slot(running.id);
  const int64_t cached = slot == nullptr ? 0 : slot->cached();
  if (running.prompt_done < 0) {
    running.prompt_done = cached;
    metrics_.prompt_found(total, cached);
  }
  prompt_step_ += done - running.prompt_done;
  running.prompt_done = done;
  if (!running.followers.empty() && done >= (total - 1) / kCheckpointStep * kCheckpointStep)
    add_followers(running, slot, done);
  running.ticket->channel.push({.kind = Event::Kind::Progress,
                                .choice = running.choice,
                                .done = done,
                                .total = total,
                                .cached = cached,
                                .seconds = seconds_between(running.ticket->arrival, Clock::now())});
}

void Generator::on_token(Running& running, int32_t token) {
  ++output_step_;
  const Clock::time_point now = Clock::now();
  if (running.last_token == Clock::time_point{})
    metrics_.first_token(seconds_between(running.ticket->arrival, now));
  else
    metrics_.next_token(seconds_between(running.last_token, now));
  running.last_token = now;
  const int top = running.asked().top_logprobs;
  if (top >= 0) running.scores.push_back(score_of(running.logits, token, top));
}

bool Generator::on_text(Running& running, std::string_view bytes) {
  if (running.reply) return running.reply->push(bytes) && !running.too_slow && !running.enough;
  Event event{.choice = running.choice, .scores = running.take_scores()};
  event.reply = {text::ReplyEvent::Kind::Content, -1, std::string(bytes)};
  running.too_slow = !running.ticket->channel.push(std::move(event));
  return !running.too_slow;
}

void Generator::on_finished(Running& running, GenerateResult result) {
  add_followers(running, nullptr, 0);
  Ending ending;
  ending.stop = result.stop;
  if (running.reply) {
    ending.ended_in_thinking = running.reply->finish().ended_in_thinking;
    ending.stop = running.reply->matched_stop();
  }
  if (running.too_slow) return fail(running, ErrorKind::Interrupted, "the client reads too slowly");
  ending.reason = result.reason;
  ending.prompt_tokens = static_cast<int64_t>(running.asked().generate.prompt.size());
  ending.cached_tokens = result.cached_tokens;
  ending.output_tokens = static_cast<int64_t>(result.tokens.size());
  ending.prompt_seconds = result.prompt_seconds;
  ending.output_seconds = result.output_seconds;
  ending.drafts = result.drafts;
  const double since = seconds_between(running.ticket->arrival, Clock::now());
  ending.queue_seconds = std::max(0.0, since - ending.prompt_seconds - ending.output_seconds);
  metrics_.finished(ending);
  LastRequest last{running.ticket->id, to_string(running.ticket->api), ending,
                   between(running.times, times_of(*scheduler_, engine_->queue().profiler))};
  {
    const std::lock_guard lock(mutex_);
    --open_;
    view_.last = std::move(last);
  }
  Event event{
      .kind = Event::Kind::Finished, .choice = running.choice, .scores = running.take_scores(), .ending = ending};
  if (running.pooler) event.embedding = running.pooler->vector();
  running.ticket->channel.push(std::move(event));
}

void Generator::fail(Running& running, ErrorKind kind, const std::string& message) {
  add_followers(running, nullptr, 0);
  {
    const std::lock_guard lock(mutex_);
    --open_;
  }
  metrics_.failed();
  Event event;
  event.kind = Event::Kind::Failed;
  event.choice = running.choice;
  event.error = kind;
  event.message = message;
  running.ticket->channel.push(std::move(event));
}

void Generator::forget(const Ticket* ticket) {
  for (auto it = running_.begin(); it != running_.end();) {
    if (it->second->ticket.get() != ticket) {
      ++it;
      continue;
    }
    scheduler_->cancel(it->first);
    {
      const std::lock_guard lock(mutex_);
      open_ -= 1 + static_cast<int64_t>(it->second->followers.size());
    }
    metrics_.cancelled();
    it = running_.erase(it);
  }
}

void Generator::fail_all(ErrorKind kind, const std::string& message) {
  while (!running_.empty()) {
    auto node = running_.extract(running_.begin());
    scheduler_->cancel(node.key());
    fail(*node.mapped(), kind, message);
  }
  over_.clear();
}

SlotView Generator::view_of(const Running& running, const Slot& slot) const {
  SlotView view;
  view.busy = true;
  view.in_prompt = slot.in_prompt();
  view.request = running.ticket->id;
  view.api = to_string(running.ticket->api);
  view.prompt_tokens = slot.prompt_size();
  view.cached_tokens = slot.cached();
  view.prompt_done = std::min(slot.sequence().length(), slot.prompt_size());
  view.output_tokens = slot.chosen();
  view.max_tokens = running.asked().generate.max_tokens;
  view.context_used = slot.sequence().length();
  view.context = slot.sequence().capacity();
  for (const DraftLength::Position& position : slot.draft_positions()) {
    view.draft_tokens += position.tried;
    view.draft_accepted += position.accepted;
  }
  view.age_seconds = seconds_between(running.ticket->arrival, Clock::now());
  if (const double seconds = slot.output_seconds(); slot.chosen() > 1 && seconds > 0)
    view.output_per_second = static_cast<double>(slot.chosen() - 1) / seconds;
  return view;
}

void Generator::update_view() {
  std::vector<SlotView> slots(static_cast<size_t>(options_.slots));
  std::vector<bool> taken(slots.size());
  for (auto& [id, running] : running_)
    if (running->slot >= 0) taken[static_cast<size_t>(running->slot)] = true;
  double oldest = 0;
  for (auto& [id, running] : running_) {
    const Slot* slot = scheduler_->slot(id);
    if (slot == nullptr) {
      oldest = std::max(oldest, seconds_between(running->ticket->arrival, Clock::now()));
      continue;
    }
    if (running->slot < 0) {
      const auto free = std::find(taken.begin(), taken.end(), false);
      if (free == taken.end()) continue;
      *free = true;
      running->slot = static_cast<int>(free - taken.begin());
    }
    slots[static_cast<size_t>(running->slot)] = view_of(*running, *slot);
  }
  const std::lock_guard lock(mutex_);
  view_.slots = std::move(slots);
  view_.arms = engine_->queue().arms();
  view_.file = engine_->pool().file();
  view_.oldest_waiting = oldest;
}

Gauges Generator::gauges() const {
  Gauges gauges;
  gauges.running = static_cast<int64_t>(scheduler_->active());
  gauges.waiting = static_cast<int64_t>(scheduler_->waiting());
  for (const auto& [id, running] : running_)
    if (const Slot* slot = scheduler_->slot(id)) gauges.longest = std::max(gauges.longest, slot->sequence().length());
  if (const PromptCache* cache = engine_->prompt_cache()) {
    gauges.cached_sequences = static_cast<int64_t>(cache->size());
    gauges.sequence_limit = engine_->options().prompt_cache_bytes;
  }
  if (engine_->options().sequence_bytes > 0) gauges.sequence_limit = engine_->options().sequence_bytes;
  gauges.sequence_bytes = engine_->pool().used();
  gauges.steps = scheduler_->counts().steps;
  gauges.broken_logits = scheduler_->counts().broken_logits;
  return gauges;
}

}  // namespace strata::server
