// Benchmark of a whole model: prompts and output at chosen depths, as llama-bench defines its tests.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "measure/draft_trial.h"
#include "runtime/engine.h"

namespace strata {

// One test: `prompt` tokens at once, then `output` tokens one by one, after `depth` tokens that are not timed.
struct ModelTest {
  int64_t prompt = 0, output = 0, depth = 0;
  int64_t batch = 2048;       // tokens handed over at a time
  int64_t micro_batch = 512;  // tokens computed at a time
  CacheOptions caches{};
  // Output follows the trace, unless the model is to choose it: then drafts can be tried.
  bool chosen = false;
  DraftTrialOptions drafts{};

  int64_t positions() const { return depth + prompt + output; }
};

std::string test_name(const ModelTest& test);  // "pp512", "tg128 @ d4096", "pp512+tg128"

// Error{Usage, Memory, Model} when the test cannot run on that model at all.
// on_host: whether it takes memory of this machine, which then has to be free.
void check_test(const ModelTest& test, const Model& model, uint64_t memory_floor = 0, bool on_host = true);

struct ModelTestResult {
  std::vector<double> seconds;  // of each repetition
  DraftCounts drafts;           // of all repetitions
  uint64_t checksum = 0;        // of the last logits, and of the tokens where the model chose them
  bool repeatable = true;       // every repetition gave the same checksum
  uint64_t state_bytes = 0;     // of the sequence at the end
  bool interrupted = false;     // fewer repetitions than asked for
};

struct BenchProgress {
  const char* what;             // "depth", "prompt", "output"
  int64_t done = 0, total = 0;  // tokens of it
  int round = 0, rounds = 0;    // repetition; 0: the warm-up
};

struct BenchHooks {
  std::function<bool()> cancelled;                     // asked between two passes
  std::function<void(const BenchProgress&)> progress;  // after each pass
};

class ModelBench {
 public:
  // The trace: token_trace() unless tokens are given, which are repeated as needed. The engine outlives the benchmark.
  ModelBench(Engine& engine, BenchHooks hooks, std::vector<int32_t> trace = {});

  void set_hooks(BenchHooks hooks) { hooks_ = std::move(hooks); }

  // Ends early, with what was measured, when it is cancelled. Error{Model} for logits that are not finite.
  ModelTestResult run(const ModelTest& test, int repetitions, bool warm_up);

  // What comes after `depth` tokens: the time of `prompt` more, and of `output` tokens one by one.
  struct Point {
    ModelTest prompt, output;
    ModelTestResult prompt_result, output_result;
  };
  // Points along one context, which is walked once; depths ascend. `each` is called as soon as a point is complete.
  // False: cancelled.
  bool sweep(const ModelTest& test, const std::vector<int64_t>& depths, int repetitions, bool warm_up,
             const std::function<void(const Point&)>& each);

 private:
  struct Depth {
    Sequence sequence;
    bool with_mtp;  // the MTP block has read the tokens too
  };
  struct Run {
    double seconds = 0;
    uint64_t checksum = 0;
    DraftCounts drafts;
    Sequence sequence;
  };
  ModelTestResult repeat(const ModelTest& test, int repetitions, bool warm_up, std::optional<Sequence>* last);
  const Sequence& at_depth(const ModelTest& test);
  Run once(const ModelTest& test);
  void read_prompt(const ModelTest& test, DraftTrial& trial, std::vector<float>& logits);
  void follow_trace(const ModelTest& test, Sequence& sequence, std::vector<float>& logits);
  void choose_output(const ModelTest& test, DraftTrial& trial, int32_t newest);
  std::span<const int32_t> trace(int64_t first, int64_t count);
  void between(const char* what, int64_t done, int64_t total) const;

  Engine& engine_;
  BenchHooks hooks_;
  std::vector<int32_t> given_, trace_;
  std::optional<Depth> depth_;  // what the next test may begin with
  int round_ = 0, rounds_ = 0;
};

}  // namespace strata
