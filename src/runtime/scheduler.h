// Several requests on one engine: each step is one forward pass over the newest tokens of all that generate and one
// piece of the prompt of one that does not yet. Tokens are those that a request gets alone.
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "base/error.h"
#include "runtime/engine.h"

namespace strata {

struct SchedulerOptions {
  int slots = 4;            // requests in progress at a time; others wait in order
  int64_t micro_batch = 0;  // prompt tokens of a step, at most; 0: the engine's
};

// Exactly one of finished and failed is called for a request that is not cancelled; neither may throw. What the others
// throw fails their request. In failed, std::current_exception() is what was thrown.
struct ScheduledCallbacks : GenerateCallbacks {
  std::function<void(int64_t id, GenerateResult)> finished;
  std::function<void(int64_t id, const Error&)> failed;
};

class Scheduler {
 public:
  explicit Scheduler(Engine& engine, const SchedulerOptions& options = {});  // the engine outlives it

  // Error{Argument} when the request cannot be run at all. Callbacks may call this too. `held`: as in
  // Engine::generate(); it lives until the request is over.
  int64_t add(GenerateRequest request, ScheduledCallbacks callbacks, HeldSequence* held = nullptr);
  // Forgets a request: no callback is called any more, `held` stays as it is, and the memory is free, from a callback
  // when the step ends. A request that cancels itself may be called until then.
  void cancel(int64_t id);
  // One forward pass. An error fails the request that it belongs to; a lack of memory that kept sequences cannot cover
  // fails the newest one. False: there was nothing to do.
  bool step();

  bool idle() const { return active_.empty() && waiting_.empty(); }
  const Slot* slot(int64_t id) const;  // null: waiting or over
  size_t active() const { return active_.size(); }
  size_t waiting() const { return waiting_.size(); }

  struct Counts {
    int64_t steps = 0, finished = 0, failed = 0;
    int64_t broken_logits = 0;  // of the failed: NaN or infinite logits
  };
  const Counts& counts() const { return counts_; }

  struct Spent {
    double seconds = 0;
    int64_t calls = 0;
  };
  // Of all steps so far. A pass that reads a piece of a prompt is a prompt pass, whoever else is in it.
  struct Times {
    Spent prepare;  // drafts, and memory for the rows
    Spent prompt_pass, output_pass;
    Spent choose;  // sampling, grammars, what callbacks do with tokens and text
  };
  const Times& times() const { return times_; }

 private:
  struct Waiting {
    int64_t id;
    GenerateRequest request;
    ScheduledCallbacks callbacks;
    HeldSequence* held;
  };
  struct Active {
    int64_t id;
    ScheduledCallbacks callbacks;
    HeldSequence* held;
    std::unique_ptr<Slot> slot;
    bool in_pass = false;
  };
  void admit();
  void end_interrupted();
  size_t prompt_turn() const;  // index of the request whose prompt is read; active_.size(): none
  void run_pass();
  std::vector<Segment> make_pass(size_t turn);
  bool join_pass(size_t index, std::vector<Segment>& pass);
  bool reserve(size_t index, const Segment& segment);
  int64_t forward(const std::vector<Segment>& pass);
  template <class Work>
  void each_in_pass(Work&& work);
  void finish(size_t index);
  void fail(size_t index, const std::exception_ptr& thrown);
  void report_failure(Active& one, const std::exception_ptr& thrown);
  void forget(int64_t id);

  Engine& engine_;
  SchedulerOptions options_;
  std::deque<Waiting> waiting_;
  std::vector<Active> active_;      // by age, the newest last
  std::vector<int64_t> cancelled_;  // during a step
  Counts counts_;
  Times times_;
  int64_t next_id_ = 1;
  int64_t last_prompt_ = 0;  // id whose prompt was read last
  bool stepping_ = false;
};

}  // namespace strata
