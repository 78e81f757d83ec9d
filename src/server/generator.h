// The engine's thread: owns engine and scheduler, takes requests from a queue and sends back what happens to them.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "runtime/embedding.h"
#include "runtime/engine.h"
#include "runtime/reply_stream.h"
#include "runtime/scheduler.h"
#include "server/events.h"
#include "server/metrics.h"
#include "server/request.h"
#include "server/stages.h"

namespace strata::server {

// One text to generate.
struct Choice {
  GenerateRequest generate;
  std::optional<text::ReplyOptions> reply = {};  // none: plain text, with the stop strings in `generate`
  std::vector<std::string> stop = {};            // with `reply`: looked for in content alone
  bool one_call = false;                         // the output ends with the first tool call
  int top_logprobs = -1;                         // -1: no scores
  std::optional<Pooling> pooling = {};           // a vector instead of text
};

// A request that was taken. The engine writes into its channel; who reads it says when it is given up.
struct Ticket {
  std::string id;
  Api api = Api::Chat;
  std::chrono::steady_clock::time_point arrival;
  std::vector<Choice> choices;
  Channel channel;
  std::atomic<bool> cancelled{false};
};

struct SlotView {
  bool busy = false, in_prompt = false;
  std::string request, api;
  int64_t prompt_tokens = 0, cached_tokens = 0, prompt_done = 0, output_tokens = 0, max_tokens = -1;
  int64_t context_used = 0, context = 0, draft_tokens = 0, draft_accepted = 0;
  double age_seconds = 0, output_per_second = 0;  // 0: not known yet
};

struct LastRequest {
  std::string request, api;
  Ending ending;
  EngineTimes times = {};  // of the engine meanwhile, for all requests together
};

struct EngineView {  // as of the last step
  std::vector<SlotView> slots;
  std::vector<ArmChoice> arms;
  std::optional<LastRequest> last;
  FileTierStats file;
  double oldest_waiting = 0;  // seconds; 0: nobody waits
};

struct GeneratorOptions {
  int slots = 4;
  int queue = 64;  // requests that wait, at most
};

class Generator {
 public:
  enum class State : uint8_t { Loading, Ready, Stopping, Failed };
  using Load = std::function<std::unique_ptr<Engine>()>;  // called on the engine's thread

  Generator(const GeneratorOptions& options, Load load, Metrics& metrics, Log& log);
  ~Generator();  // cancels what runs

  State state() const { return state_; }
  std::exception_ptr failure() const;                     // Failed: why
  const Engine* engine() const { return ready_engine_; }  // null until it is loaded

  // RequestError: 503 while there is no engine or it stops, 429 when the queue is full.
  std::shared_ptr<Ticket> submit(std::string id, Api api, std::vector<Choice> choices);
  void cancel(const std::shared_ptr<Ticket>& ticket);  // from any thread; nothing comes through its channel any more
  // No new requests; returns when all are over, or were ended because the time is.
  void stop(double seconds);

  EngineView view() const;
  const GeneratorOptions& options() const { return options_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Running;

  void run();
  void work();
  bool take_inbox();  // false: it is time to end
  void start(const std::shared_ptr<Ticket>& ticket);
  void add(std::unique_ptr<Running> running);
  ScheduledCallbacks callbacks_of(Running& running);
  void add_followers(Running& first, const Slot* slot, int64_t done);
  void on_progress(Running& running, int64_t done, int64_t total);
  void on_token(Running& running, int32_t token);
  bool on_text(Running& running, std::string_view bytes);
  void on_finished(Running& running, GenerateResult result);
  void fail(Running& running, ErrorKind kind, const std::string& message);
  void forget(const Ticket* ticket);
  void fail_all(ErrorKind kind, const std::string& message);
  void update_view();
  SlotView view_of(const Running& running, const Slot& slot) const;
  Gauges gauges() const;

  const GeneratorOptions options_;
  const Load load_;
  Metrics& metrics_;
  Log& log_;

  // Of the engine's thread alone.
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Scheduler> scheduler_;
  std::map<int64_t, std::unique_ptr<Running>> running_;  // by the scheduler's id: waiting ones too
  std::vector<std::unique_ptr<Running>> over_;           // ended during a step
  int64_t prompt_step_ = 0, output_step_ = 0;            // tokens of the step under way

  mutable std::mutex mutex_;  // of all below
  std::condition_variable wake_;
  std::vector<std::shared_ptr<Ticket>> submitted_, cancelled_;
  EngineView view_;
  std::exception_ptr failure_;
  int64_t open_ = 0;  // choices submitted and not over
  bool stopping_ = false;
  Clock::time_point deadline_;

  std::atomic<const Engine*> ready_engine_{nullptr};
  std::atomic<State> state_{State::Loading};
  std::thread thread_;
};

}  // namespace strata::server
