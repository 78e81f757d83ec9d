#include "measure/rates.h"

#include <algorithm>
#include <chrono>
#include <exception>

#include "base/error.h"
#include "base/hash.h"
#include "evidence/ab_gates.h"
#include "evidence/statistics.h"
#include "measure/disturbance.h"
#include "measure/token_trace.h"
#include "runtime/plan.h"
#include "runtime/scheduler.h"

namespace strata {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kWarmUpPrompt = 64, kWarmUpOutput = 8;  // tokens, enough to touch weights and window sizes

class RatesRunner {
 public:
  RatesRunner(Engine& engine, const RatesPlan& plan, const GenerateRequest& drafts, const std::vector<int32_t>& text,
              const RatesHooks& hooks)
      : engine_(engine), plan_(plan), text_(text), hooks_(hooks) {
    request_.draft = drafts.draft;
    request_.draft_max = drafts.draft_max;
    request_.sampler.temperature = 0;
    request_.ignore_end = true;
  }

  std::vector<RatesCell> run() {
    std::vector<RatesCell> cells;
    for (const int64_t length : plan_.lengths) {
      RatesCell cell{.length = length, .runs = {}, .missing = cannot_run(length)};
      if (cell.missing.empty()) measure(cell);
      if (hooks_.cell) hooks_.cell(cell);
      cells.push_back(std::move(cell));
    }
    return cells;
  }

 private:
  bool interrupted() const { return hooks_.interrupted != nullptr && hooks_.interrupted->load(); }

  std::string cannot_run(int64_t length) const {
    const ModelSpec& spec = engine_.model().spec();
    if (interrupted()) return "interrupted before it began";
    const std::optional<int64_t> prompt = rates_prompt(length, plan_.generate, spec.context);
    if (!prompt) return "too long for the model, which has " + std::to_string(spec.context) + " positions";
    if (slow_ > 0) return "not tried: a prompt of " + length_text(slow_) + " took longer than the limit";
    const std::string refusal = engine_.memory_refusal(*prompt + plan_.generate);
    return refusal.empty() ? "" : "does not fit the memory: " + refusal;
  }

  std::vector<int32_t> prompt_tokens(int64_t count) const {
    if (text_.empty()) return token_trace(engine_.model().spec().vocabulary, count, plan_.seed);
    std::vector<int32_t> tokens(static_cast<size_t>(count));
    for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = text_[i % text_.size()];
    return tokens;
  }

  void measure(RatesCell& cell) {
    cell.prompt_tokens = *rates_prompt(cell.length, plan_.generate, engine_.model().spec().context);
    try {
      if (plan_.warm_up && !warm_) warm_up();
      deadline_ =
          Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(plan_.limit));
      while (static_cast<int64_t>(cell.runs.size()) < plan_.repetitions && cell.missing.empty()) one(cell);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::Interrupted) {
        cell.missing = "interrupted" + runs_text(cell);
        return;
      }
      cell.missing = std::string("failed: ") + error.what();
      cell.failed = true;
    }
  }

  void warm_up() {
    request_.prompt = prompt_tokens(std::min(kWarmUpPrompt, plan_.lengths.front()));
    request_.max_tokens = kWarmUpOutput;
    run_request(nullptr);
    warm_ = true;
  }

  // A step is a piece of the prompt or a window of output: what the clock and Ctrl-C are asked between.
  GenerateResult run_request(const RatesCell* cell) {
    std::atomic<bool> stop = false;
    GenerateResult result;
    std::exception_ptr thrown;
    ScheduledCallbacks callbacks;
    callbacks.interrupted = &stop;
    callbacks.prompt_progress = [&](int64_t done, int64_t total) { tell(cell, "prompt", done, total); };
    callbacks.finished = [&](int64_t, GenerateResult made) { result = std::move(made); };
    callbacks.failed = [&](int64_t, const Error&) { thrown = std::current_exception(); };
    Scheduler alone(engine_, {.slots = 1});
    const int64_t id = alone.add(request_, callbacks);
    while (alone.step()) {
      stop = interrupted() || (cell != nullptr && plan_.limit > 0 && Clock::now() > deadline_);
      if (const Slot* slot = alone.slot(id); slot != nullptr && !slot->in_prompt())
        tell(cell, "output", static_cast<int64_t>(slot->history().size()) - slot->prompt_size(), request_.max_tokens);
    }
    if (thrown) std::rethrow_exception(thrown);
    if (interrupted()) throw Error(ErrorKind::Interrupted, "interrupted");
    if (result.reason == FinishReason::MemoryFloor)
      throw Error(ErrorKind::Memory, "free memory fell below the floor (--mem-floor)");
    return result;
  }

  void tell(const RatesCell* cell, const char* what, int64_t done, int64_t total) const {
    if (hooks_.progress && cell != nullptr)
      hooks_.progress(*cell, static_cast<int64_t>(cell->runs.size()) + 1, what, done, total);
  }

  void one(RatesCell& cell) {
    request_.prompt = prompt_tokens(cell.prompt_tokens);
    request_.max_tokens = plan_.generate;
    const LoadReading before = read_load();
    const GenerateResult made = run_request(&cell);
    const LoadReading after = read_load();
    const auto tokens = static_cast<int64_t>(made.tokens.size());
    if (tokens == 0) {
      stopped(cell, "the prompt was not read to its end");
      slow_ = cell.length;
      return;
    }
    RatesRun run{.prompt_seconds = made.prompt_seconds,
                 .output_seconds = made.output_seconds,
                 .output_tokens = tokens,
                 .output = hash_hex(hash64(made.tokens.data(), made.tokens.size() * sizeof(int32_t))),
                 .flags = disturbances(before, after, fastest_)};
    fastest_ = std::max({fastest_, before.megahertz, after.megahertz});
    for (const DraftLength::Position& position : made.drafts) {
      run.drafted += position.tried;
      run.accepted += position.accepted;
    }
    if (tokens < plan_.generate) {
      if (!cell.runs.empty()) return stopped(cell, "");  // complete runs are enough
      stopped(cell, "after " + std::to_string(tokens) + " of " + std::to_string(plan_.generate) + " output tokens");
    }
    cell.runs.push_back(std::move(run));
    if (hooks_.ran) hooks_.ran(cell, made.tokens);
  }

  void stopped(RatesCell& cell, const std::string& where) const {
    cell.missing = "stopped after " + std::to_string(static_cast<int64_t>(plan_.limit)) + " s (--limit)";
    cell.missing += cell.runs.empty() ? ": " + where : runs_text(cell);
  }

  std::string runs_text(const RatesCell& cell) const {
    if (cell.runs.empty()) return {};
    return " with " + std::to_string(cell.runs.size()) + " of " + std::to_string(plan_.repetitions) + " runs";
  }

  Engine& engine_;
  const RatesPlan& plan_;
  const std::vector<int32_t>& text_;
  const RatesHooks& hooks_;
  GenerateRequest request_;
  Clock::time_point deadline_;
  bool warm_ = false;
  int64_t slow_ = 0;  // length whose prompt took longer than the limit
  double fastest_ = 0;
};

}  // namespace

std::optional<double> prompt_rate(const RatesCell& cell) {
  std::vector<double> rates;
  for (const RatesRun& run : cell.runs)
    rates.push_back(static_cast<double>(cell.prompt_tokens) / std::max(run.prompt_seconds, 1e-9));
  return rates.empty() ? std::nullopt : std::optional(median(rates));
}

std::optional<double> output_rate(const RatesCell& cell, const RatesPlan& plan) {
  std::vector<double> rates;
  for (const RatesRun& run : cell.runs)
    if (run.output_tokens == plan.generate && plan.generate > 1)
      rates.push_back(static_cast<double>(run.output_tokens - 1) / std::max(run.output_seconds, 1e-9));
  return rates.empty() ? std::nullopt : std::optional(median(rates));
}

std::optional<int64_t> rates_prompt(int64_t length, int64_t generate, int64_t context) {
  if (length > context || generate >= context) return std::nullopt;
  return std::min(length, context - generate);
}

std::vector<RatesCell> run_rates(Engine& engine, const RatesPlan& plan, const GenerateRequest& drafts,
                                 const std::vector<int32_t>& text, const RatesHooks& hooks) {
  return RatesRunner(engine, plan, drafts, text, hooks).run();
}

}  // namespace strata
