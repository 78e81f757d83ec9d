// Counters of the server, and the text that Prometheus reads.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "server/events.h"

namespace strata::server {

// Counts by upper bounds, as Prometheus has it.
class Histogram {
 public:
  explicit Histogram(std::vector<double> bounds) : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}
  void add(double value);
  // Lines "name_bucket{labels,le=...}", "name_sum", "name_count".
  std::string text(const std::string& name, const std::string& labels) const;
  int64_t count() const { return count_; }

 private:
  std::vector<double> bounds_;
  std::vector<int64_t> counts_;
  double sum_ = 0;
  int64_t count_ = 0;
};

// What is true now and not a sum: from the engine's thread.
struct Gauges {
  int64_t running = 0, waiting = 0;
  int64_t longest = 0;  // context in use, of the longest sequence
  int64_t cached_sequences = 0;
  uint64_t sequence_bytes = 0, sequence_limit = 0;  // limit 0: none
  int64_t steps = 0, broken_logits = 0;
};

// Numbers of the last seconds, whole ones, the oldest first.
struct Rates {
  int64_t end = 0;  // Unix time at which the last second began
  std::vector<double> prompt, output;
  std::vector<int64_t> running, waiting;
};

struct Counts {
  int64_t requests = 0, finished = 0, failed = 0, cancelled = 0, refused = 0;
  int64_t prompt_tokens = 0, output_tokens = 0;  // read and chosen so far, running requests too
  int64_t queried_tokens = 0, hit_tokens = 0;    // of prompts, and those that a kept sequence held
  int64_t windows = 0, drafted = 0, accepted = 0;
  std::array<DraftLength::Position, kMaxDrafts> drafts{};
};

// Safe from several threads.
class Metrics {
 public:
  static constexpr size_t kSeconds = 300;

  Metrics();
  void requested() {
    const std::lock_guard lock(mutex_);
    ++counts_.requests;
  }
  void refused() {
    const std::lock_guard lock(mutex_);
    ++counts_.refused;
  }
  void failed() {
    const std::lock_guard lock(mutex_);
    ++counts_.failed;
  }
  void cancelled() {
    const std::lock_guard lock(mutex_);
    ++counts_.cancelled;
  }
  void stepped(int64_t prompt_tokens, int64_t output_tokens, const Gauges& gauges);
  void first_token(double seconds);  // since the request came
  void next_token(double seconds);   // since the one before
  void prompt_found(int64_t tokens, int64_t cached);
  void finished(const Ending& ending);

  Counts counts() const;
  Gauges gauges() const;
  Rates rates();
  std::string prometheus(const std::string& model) const;

 private:
  struct Second {
    double prompt = 0, output = 0;
    int64_t running = 0, waiting = 0;
  };
  void advance();  // to the present second
  std::string llamacpp_text() const;
  std::string vllm_text(const std::string& model) const;

  mutable std::mutex mutex_;
  Counts counts_;
  Gauges gauges_;
  double prompt_seconds_ = 0, output_seconds_ = 0;
  int64_t output_after_first_ = 0, prompt_run_ = 0;  // tokens of those seconds
  int64_t passes_ = 0, busy_ = 0, longest_ = 0;
  std::map<std::string, int64_t> reasons_;
  Histogram first_token_, between_tokens_, whole_, queue_, prompt_, output_, inference_;
  std::array<Second, kSeconds + 1> seconds_{};  // a ring; `now_` is the one under way
  int64_t now_ = 0, begin_ = 0;
};

const char* finished_reason(FinishReason reason);  // stop, length, abort: vLLM's names

}  // namespace strata::server
