#include "runtime/scheduler.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <optional>

namespace strata {
namespace {

struct Failure {
  std::exception_ptr thrown;
  bool memory = false;  // for lack of it
};

template <class Work>
std::optional<Failure> failure_of(Work&& work) {
  try {
    work();
  } catch (const Error& error) {
    return Failure{std::current_exception(), error.kind() == ErrorKind::Memory};
  } catch (...) {
    return Failure{std::current_exception()};
  }
  return std::nullopt;
}

// Gives the time since it was asked last.
class Stopwatch {
 public:
  void add_to(Scheduler::Spent& spent) {
    const auto now = std::chrono::steady_clock::now();
    spent.seconds += std::chrono::duration<double>(now - last_).count();
    ++spent.calls;
    last_ = now;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace

Scheduler::Scheduler(Engine& engine, const SchedulerOptions& options) : engine_(engine), options_(options) {
  if (options_.slots < 1)
    throw Error(ErrorKind::Argument, "a scheduler needs a slot, not " + std::to_string(options_.slots));
  if (options_.micro_batch < 1) options_.micro_batch = engine.options().micro_batch;
}

int64_t Scheduler::add(GenerateRequest request, ScheduledCallbacks callbacks, HeldSequence* held) {
  engine_.check(request);
  waiting_.push_back({next_id_, std::move(request), std::move(callbacks), held});
  return next_id_++;
}

void Scheduler::cancel(int64_t id) {
  if (!stepping_) return forget(id);
  cancelled_.push_back(id);
  for (Active& one : active_)
    if (one.id == id) one.in_pass = false, one.callbacks = {}, one.held = nullptr;
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
  const bool low = engine_.below_memory_floor();
  if (!low || active_.empty()) admit();
  if (low && !active_.empty()) {  // the newest makes room
    active_.back().slot->stop(FinishReason::MemoryFloor);
    finish(active_.size() - 1);
  }
  run_pass();
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
    Active one{next.id, next.callbacks, next.held, nullptr};
    const auto failure = failure_of([&] { one.slot = engine_.open(next.request, next.callbacks, next.held); });
    // Without memory for its states a request waits for those that run.
    if (failure && failure->memory && !active_.empty()) return;
    waiting_.pop_front();
    if (failure) {
      report_failure(one, failure->thrown);
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
  for (size_t i = active_.size(); i-- > 0;)
    if (active_[i].slot->in_prompt()) first = i;
  for (size_t i = first; i < active_.size(); ++i)
    if (active_[i].slot->in_prompt() && active_[i].id > last_prompt_) return i;
  return first;
}

// The newest tokens of all that generate, and a piece of the prompt of the one at `turn`.
std::vector<Segment> Scheduler::make_pass(size_t turn) {
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
  if (const auto failure = failure_of([&] { segment = active_[index].slot->next(options_.micro_batch); })) {
    fail(index, failure->thrown);
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
    const auto failure = failure_of([&] { engine_.reserve(*active_[index].slot, segment); });
    if (!failure) return true;
    const bool last = !failure->memory || index + 1 == active_.size();
    fail(last ? index : active_.size() - 1, failure->thrown);
    if (last) return false;
  }
}

// A pass that reads a prompt counts as a step of the prompt, and what is chosen from its logits as a step of decoding.
void Scheduler::run_pass() {
  if (active_.empty()) return;
  Stopwatch watch;
  Profiler* const profiler = engine_.queue().profiler;
  const size_t turn = prompt_turn();
  const bool reads = turn < active_.size();
  {
    std::optional<ProfileSpan> span(std::in_place, profiler, reads ? Stage::Prompt : Stage::Decode);
    const std::vector<Segment> pass = make_pass(turn);
    watch.add_to(times_.prepare);
    if (pass.empty()) return;
    const auto failure = failure_of([&] { span->add_tokens(forward(pass)); });
    watch.add_to(reads ? times_.prompt_pass : times_.output_pass);
    each_in_pass([&](Slot& slot) {
      if (failure) std::rethrow_exception(failure->thrown);
      slot.consume_prompt();
    });
    if (reads) span.reset();
    const bool chooses = std::any_of(active_.begin(), active_.end(),
                                     [](const Active& one) { return one.in_pass && one.slot->chooses(); });
    if (reads && chooses) span.emplace(profiler, Stage::Decode);
    each_in_pass([](Slot& slot) { slot.choose(); });
    watch.add_to(times_.choose);
  }
  for (size_t i = 0; i < active_.size();)
    if (active_[i].slot->done())
      finish(i);
    else
      ++i;
}

// How many of the tokens stay, whatever is chosen.
int64_t Scheduler::forward(const std::vector<Segment>& pass) {
  int64_t certain = 0, verified = 0;
  for (const Segment& segment : pass) {
    const auto rows = static_cast<int64_t>(segment.tokens.size());
    certain += segment.certain < 0 ? rows : segment.certain;
    if (segment.certain >= 0 && segment.certain < rows) verified += rows;
  }
  std::optional<ProfileSpan> verify;
  if (verified > 0) verify.emplace(engine_.queue().profiler, Stage::Verify, verified);
  engine_.forward().run(pass);
  return certain;
}

// A request for which work throws fails alone.
template <class Work>
void Scheduler::each_in_pass(Work&& work) {
  for (size_t i = 0; i < active_.size();) {
    std::optional<Failure> failure;
    if (active_[i].in_pass) failure = failure_of([&] { work(*active_[i].slot); });
    if (failure)
      fail(i, failure->thrown);
    else
      ++i;
  }
}

void Scheduler::finish(size_t index) {
  Active one = std::move(active_[index]);
  active_.erase(active_.begin() + static_cast<int64_t>(index));
  GenerateResult result;
  // The end of the text is shown here, by a callback that may throw.
  if (const auto failure = failure_of([&] { result = engine_.close(*one.slot, one.held); }))
    return report_failure(one, failure->thrown);
  one.slot.reset();
  ++counts_.finished;
  if (one.callbacks.finished) one.callbacks.finished(one.id, std::move(result));
}

void Scheduler::fail(size_t index, const std::exception_ptr& thrown) {
  Active one = std::move(active_[index]);
  active_.erase(active_.begin() + static_cast<int64_t>(index));
  report_failure(one, thrown);
}

void Scheduler::report_failure(Active& one, const std::exception_ptr& thrown) {
  one.slot.reset();
  ++counts_.failed;
  const auto report = [&](const Error& error) {
    counts_.broken_logits += dynamic_cast<const LogitsError*>(&error) != nullptr;
    if (one.callbacks.failed) one.callbacks.failed(one.id, error);
  };
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    report(error);
  } catch (const std::bad_alloc&) {
    report(Error(ErrorKind::Memory, "the system has no memory left: end other programs, or ask for a shorter context"));
  } catch (const std::exception& error) {
    report(Error(ErrorKind::Argument, error.what(), "a callback of the request"));
  } catch (...) {
    report(Error(ErrorKind::Argument, "an exception of unknown type", "a callback of the request"));
  }
}

}  // namespace strata
