#include "runtime/scheduler.h"

#include <algorithm>

namespace strata {
namespace {

// Runs work; gives the error when it throws.
template <class Work>
std::optional<Error> error_of(Work&& work, bool* broken_logits = nullptr) {
  try {
    work();
  } catch (const LogitsError& error) {
    if (broken_logits != nullptr) *broken_logits = true;
    return error;
  } catch (const Error& error) {
    return error;
  } catch (const std::exception& error) {
    return Error(ErrorKind::Argument, error.what(), "a callback of the request");
  }
  return std::nullopt;
}

}  // namespace

Scheduler::Scheduler(Engine& engine, const SchedulerOptions& options) : engine_(engine), options_(options) {
  if (options_.slots < 1)
    throw Error(ErrorKind::Argument, "a scheduler needs a slot, not " + std::to_string(options_.slots));
  if (options_.micro_batch < 1) options_.micro_batch = engine.options().micro_batch;
}

int64_t Scheduler::add(GenerateRequest request, ScheduledCallbacks callbacks) {
  engine_.check(request);
  waiting_.push_back({next_id_, std::move(request), std::move(callbacks)});
  return next_id_++;
}

void Scheduler::cancel(int64_t id) {
  if (stepping_)
    cancelled_.push_back(id);
  else
    forget(id);
}

void Scheduler::forget(int64_t id) {
  std::erase_if(waiting_, [id](const Waiting& one) { return one.id == id; });
  std::erase_if(active_, [id](const Active& one) { return one.id == id; });
}

const Slot* Scheduler::slot(int64_t id) const {
  for (const Active& one : active_)
    if (one.id == id) return one.slot.get();
  return nullptr;
}

bool Scheduler::step() {
  struct Stepping {  // ends with the step, however that ends
    Scheduler& scheduler;
    explicit Stepping(Scheduler& owner) : scheduler(owner) { owner.stepping_ = true; }
    ~Stepping() {
      scheduler.stepping_ = false;
      for (const int64_t id : scheduler.cancelled_) scheduler.forget(id);
      scheduler.cancelled_.clear();
    }
  };
  if (idle()) return false;
  const Stepping stepping(*this);
  ++counts_.steps;
  end_interrupted();
  if (!active_.empty() && engine_.below_memory_floor()) {  // the newest makes room
    active_.back().slot->stop(FinishReason::MemoryFloor);
    finish(active_.size() - 1);
  } else {
    admit();
  }
  const std::vector<Segment> pass = make_pass();
  if (!pass.empty()) run_pass(pass);
  return true;
}

void Scheduler::end_interrupted() {
  for (size_t i = active_.size(); i-- > 0;)
    if (active_[i].slot->interrupted()) {
      active_[i].slot->stop(FinishReason::Interrupted);
      finish(i);
    }
}

void Scheduler::admit() {
  while (!waiting_.empty() && active_.size() < static_cast<size_t>(options_.slots)) {
    Waiting& next = waiting_.front();
    Active one{next.id, next.callbacks, nullptr};
    const std::optional<Error> error = error_of([&] { one.slot = engine_.open(next.request, next.callbacks); });
    // Without memory for its states a request waits for those that run.
    if (error && error->kind() == ErrorKind::Memory && !active_.empty()) return;
    waiting_.pop_front();
    if (error) {
      report_failure(one.id, one.callbacks, *error);
      continue;
    }
    active_.push_back(std::move(one));
    if (active_.back().slot->interrupted()) active_.back().slot->stop(FinishReason::Interrupted);
    if (active_.back().slot->done()) finish(active_.size() - 1);
  }
}

// In turns: the first one behind the last that read.
size_t Scheduler::prompt_turn() const {
  size_t first = active_.size();
  for (size_t i = active_.size(); i-- > 0;) {
    if (!active_[i].slot->in_prompt()) continue;
    first = i;
  }
  for (size_t i = first; i < active_.size(); ++i)
    if (active_[i].slot->in_prompt() && active_[i].id > last_prompt_) return i;
  return first;
}

std::vector<Segment> Scheduler::make_pass() {
  const size_t turn = prompt_turn();
  const int64_t reader = turn < active_.size() ? active_[turn].id : 0;
  std::vector<Segment> pass;
  for (size_t i = 0; i < active_.size();) {
    const bool joins = !active_[i].slot->in_prompt() || active_[i].id == reader;
    active_[i].in_pass = false;
    if (!joins || join_pass(i, pass)) ++i;
  }
  if (reader != 0) last_prompt_ = reader;
  return pass;
}

// False: the request failed and is gone.
bool Scheduler::join_pass(size_t index, std::vector<Segment>& pass) {
  Segment segment;
  const std::optional<Error> error = error_of([&] { segment = active_[index].slot->next(options_.micro_batch); });
  if (error) {
    fail(index, *error);
    return false;
  }
  if (!reserve(index, segment)) return false;
  active_[index].in_pass = true;
  pass.push_back(segment);
  return true;
}

// Newer requests give way. False: this one was the newest, and is gone.
bool Scheduler::reserve(size_t index, const Segment& segment) {
  for (;;) {
    const std::optional<Error> error = error_of([&] { engine_.reserve(*active_[index].slot, segment); });
    if (!error) return true;
    const bool last = error->kind() != ErrorKind::Memory || index + 1 == active_.size();
    fail(last ? index : active_.size() - 1, *error);
    if (last) return false;
  }
}

void Scheduler::run_pass(const std::vector<Segment>& pass) {
  const std::optional<Error> broken = error_of([&] { engine_.forward().run(pass); });
  for (size_t i = 0; i < active_.size();) {
    Active& one = active_[i];
    if (!one.in_pass) {
      ++i;
      continue;
    }
    bool broken_logits = false;
    const std::optional<Error> error = broken ? broken : error_of([&] { one.slot->consume(); }, &broken_logits);
    counts_.broken_logits += broken_logits;
    if (error)
      fail(i, *error);
    else if (one.slot->done())
      finish(i);
    else
      ++i;
  }
}

void Scheduler::finish(size_t index) {
  Active one = std::move(active_[index]);
  active_.erase(active_.begin() + static_cast<int64_t>(index));
  GenerateResult result;
  // The end of the text is shown here, by a callback that may throw.
  if (const std::optional<Error> error = error_of([&] { result = engine_.close(*one.slot); }))
    return report_failure(one.id, one.callbacks, *error);
  one.slot.reset();
  ++counts_.finished;
  if (one.callbacks.finished) one.callbacks.finished(one.id, std::move(result));
}

void Scheduler::fail(size_t index, const Error& error) {
  Active one = std::move(active_[index]);
  active_.erase(active_.begin() + static_cast<int64_t>(index));
  one.slot.reset();
  report_failure(one.id, one.callbacks, error);
}

void Scheduler::report_failure(int64_t id, const ScheduledCallbacks& callbacks, const Error& error) {
  ++counts_.failed;
  if (callbacks.failed) callbacks.failed(id, error);
}

}  // namespace strata
