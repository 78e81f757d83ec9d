// Runs paired trials: two engines in one process, the same tokens, one run after the other in the order of the plan.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "evidence/ab.h"
#include "runtime/engine.h"

namespace strata {

// How one side runs.
struct AbEngineOptions {
  EngineOptions engine;
  DraftKind draft = DraftKind::None;
  int draft_max = kMaxDrafts;
};

struct AbHooks {
  std::function<void(const AbCell&)> cell;  // as soon as it is measured
  std::function<void(int64_t run, int64_t runs, const std::string& what)> progress;
  const std::atomic<bool>* interrupted = nullptr;
};

class AbRunner {
 public:
  // Loads both engines. Error{Usage} when a length of the plan and its output lie beyond what a model was trained for.
  AbRunner(const AbPlan& plan, const std::array<AbEngineOptions, 2>& sides, Log& log);
  ~AbRunner();

  const Queue& queue() const;  // of side A

  // Of the files' metadata, tensor tables and samples of their weights.
  std::string model_hash() const;

  // Warms both sides up at every length, which gives the arms and the outputs, then runs the plan: fills arms, outputs,
  // cells and, when it ended early, `stopped`. An attempt that fails is repeated with both sides, as often as the plan
  // allows. An interruption keeps what was measured.
  void run(AbTrial& trial, const AbHooks& hooks);

 private:
  struct Side;
  struct Run;
  struct Probe;

  Run run_once(Side& side, int64_t length, Probe* probe);
  void run_prompt(Side& side, Slot& slot, Run& run, Probe* probe);
  void run_decode(Side& side, Slot& slot, Run& run, Probe* probe);
  void warm_up(AbTrial& trial);
  bool run_attempt(AbTrial& trial, AbCell place);
  bool run_slot(AbTrial& trial, AbCell place);
  void add_cells(AbTrial& trial, const AbCell& place, const Run& run);
  void tell(const std::string& what) const;

  const AbPlan plan_;
  std::array<std::unique_ptr<Side>, 2> sides_;
  std::vector<int32_t> trace_;
  AbHooks hooks_;
  int64_t order_ = 0, done_ = 0;
  double fastest_ = 0;  // clock
};

}  // namespace strata
