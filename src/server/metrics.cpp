#include "server/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

namespace strata::server {
namespace {

int64_t unix_second() { return static_cast<int64_t>(std::time(nullptr)); }

// Without what the text format of Prometheus would read as its own.
std::string label_text(const std::string& text) {
  std::string made;
  for (const char c : text) {
    if (c == '\n')
      made += "\\n";
    else if (c == '"' || c == '\\')
      made += std::string("\\") + c;
    else
      made += c;
  }
  return made;
}

std::string sample(const char* name, const char* type, const char* help, const std::string& labels, double value) {
  return fmt::format("# HELP {} {}\n# TYPE {} {}\n{}{} {}\n", name, help, name, type, name,
                     labels.empty() ? "" : "{" + labels + "}", value);
}

double ratio(double a, double b) { return b > 0 ? a / b : 0; }

std::vector<double> token_bounds() {
  return {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20};
}
std::vector<double> request_bounds() {
  return {0.01, 0.05, 0.1, 0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920};
}

std::string drafts_text(const std::string& prefix, const std::string& labels, const Counts& counts) {
  const auto name = [&](const char* rest) { return prefix + rest; };
  std::string text = sample(name("spec_decode_num_drafts_total").c_str(), "counter", "Verify windows with a draft.",
                            labels, static_cast<double>(counts.windows));
  text += sample(name("spec_decode_num_draft_tokens_total").c_str(), "counter", "Draft tokens that were checked.",
                 labels, static_cast<double>(counts.drafted));
  text += sample(name("spec_decode_num_accepted_tokens_total").c_str(), "counter", "Draft tokens that held.", labels,
                 static_cast<double>(counts.accepted));
  const std::string position = name("spec_decode_num_accepted_tokens_per_pos_total");
  text += fmt::format("# HELP {} Draft tokens that held, by position.\n# TYPE {} counter\n", position, position);
  for (size_t i = 0; i < counts.drafts.size(); ++i)
    text += fmt::format("{}{{{}{}position=\"{}\"}} {}\n", position, labels, labels.empty() ? "" : ",", i,
                        counts.drafts[i].accepted);
  return text;
}

}  // namespace

const char* finished_reason(FinishReason reason) {
  switch (reason) {
    case FinishReason::EndOfText:
    case FinishReason::StopString: return "stop";
    case FinishReason::Length: return "length";
    case FinishReason::Repetition: return "repetition";
    case FinishReason::MemoryFloor:
    case FinishReason::Interrupted: return "abort";
  }
  return "abort";
}

void Histogram::add(double value) {
  const auto bucket = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
  ++counts_[static_cast<size_t>(bucket)];
  sum_ += value;
  ++count_;
}

std::string Histogram::text(const std::string& name, const std::string& labels) const {
  std::string text;
  int64_t below = 0;
  for (size_t i = 0; i < bounds_.size(); ++i) {
    below += counts_[i];
    text += fmt::format("{}_bucket{{{},le=\"{}\"}} {}\n", name, labels, bounds_[i], below);
  }
  return text + fmt::format("{}_bucket{{{},le=\"+Inf\"}} {}\n{}_sum{{{}}} {}\n{}_count{{{}}} {}\n", name, labels,
                            count_, name, labels, sum_, name, labels, count_);
}

Metrics::Metrics()
    : first_token_(token_bounds()),
      between_tokens_(token_bounds()),
      whole_(request_bounds()),
      queue_(request_bounds()),
      prompt_(request_bounds()),
      output_(request_bounds()),
      inference_(request_bounds()),
      now_(unix_second()),
      begin_(now_) {}

void Metrics::advance() {
  const int64_t present = unix_second();
  if (present - now_ > static_cast<int64_t>(seconds_.size())) now_ = present - static_cast<int64_t>(seconds_.size());
  while (now_ < present) {
    ++now_;
    seconds_[static_cast<size_t>(now_) % seconds_.size()] = {0, 0, gauges_.running, gauges_.waiting};
  }
}

void Metrics::stepped(int64_t prompt_tokens, int64_t output_tokens, const Gauges& gauges) {
  const std::lock_guard lock(mutex_);
  advance();
  gauges_ = gauges;
  Second& second = seconds_[static_cast<size_t>(now_) % seconds_.size()];
  second.prompt += static_cast<double>(prompt_tokens);
  second.output += static_cast<double>(output_tokens);
  second.running = gauges.running;
  second.waiting = gauges.waiting;
  counts_.prompt_tokens += prompt_tokens;
  counts_.output_tokens += output_tokens;
  longest_ = std::max(longest_, gauges.longest);
  if (prompt_tokens + output_tokens == 0) return;
  ++passes_;
  busy_ += gauges.running;
}

void Metrics::first_token(double seconds) {
  const std::lock_guard lock(mutex_);
  first_token_.add(seconds);
}

void Metrics::next_token(double seconds) {
  const std::lock_guard lock(mutex_);
  between_tokens_.add(seconds);
}

void Metrics::prompt_found(int64_t tokens, int64_t cached) {
  const std::lock_guard lock(mutex_);
  counts_.queried_tokens += tokens;
  counts_.hit_tokens += cached;
}

void Metrics::finished(const Ending& ending) {
  const std::lock_guard lock(mutex_);
  ++counts_.finished;
  ++reasons_[finished_reason(ending.reason)];
  counts_.windows += ending.drafts[0].tried;
  counts_.drafted += ending.drafted();
  counts_.accepted += ending.accepted();
  for (size_t i = 0; i < counts_.drafts.size(); ++i) {
    counts_.drafts[i].tried += ending.drafts[i].tried;
    counts_.drafts[i].accepted += ending.drafts[i].accepted;
  }
  prompt_seconds_ += ending.prompt_seconds;
  output_seconds_ += ending.output_seconds;
  prompt_run_ += ending.prompt_tokens - ending.cached_tokens;
  output_after_first_ += std::max<int64_t>(ending.output_tokens - 1, 0);
  queue_.add(ending.queue_seconds);
  prompt_.add(ending.prompt_seconds);
  output_.add(ending.output_seconds);
  inference_.add(ending.prompt_seconds + ending.output_seconds);
  whole_.add(ending.queue_seconds + ending.prompt_seconds + ending.output_seconds);
}

Counts Metrics::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

Gauges Metrics::gauges() const {
  const std::lock_guard lock(mutex_);
  return gauges_;
}

Rates Metrics::rates() {
  const std::lock_guard lock(mutex_);
  advance();
  Rates rates;
  rates.end = now_ - 1;
  const int64_t first = std::max(now_ - static_cast<int64_t>(kSeconds), begin_);
  for (int64_t at = first; at < now_; ++at) {
    const Second& second = seconds_[static_cast<size_t>(at) % seconds_.size()];
    rates.prompt.push_back(second.prompt);
    rates.output.push_back(second.output);
    rates.running.push_back(second.running);
    rates.waiting.push_back(second.waiting);
  }
  return rates;
}

std::string Metrics::llamacpp_text() const {
  const auto count = [](int64_t value) { return static_cast<double>(value); };
  std::string text;
  const auto add = [&](const char* name, const char* type, const char* help, double value) {
    text += sample((std::string("llamacpp:") + name).c_str(), type, help, "", value);
  };
  add("prompt_tokens_total", "counter", "Prompt tokens that were run.", count(counts_.prompt_tokens));
  add("prompt_seconds_total", "counter", "Time spent on prompts.", prompt_seconds_);
  add("tokens_predicted_total", "counter", "Generated tokens.", count(counts_.output_tokens));
  add("tokens_predicted_seconds_total", "counter", "Time spent on generated tokens.", output_seconds_);
  add("prompt_tokens_seconds", "gauge", "Mean rate of prompts, tokens a second.",
      ratio(count(prompt_run_), prompt_seconds_));
  add("predicted_tokens_seconds", "gauge", "Mean rate of one output, tokens a second.",
      ratio(count(output_after_first_), output_seconds_));
  add("requests_processing", "gauge", "Requests that run.", count(gauges_.running));
  add("requests_deferred", "gauge", "Requests that wait.", count(gauges_.waiting));
  add("n_tokens_max", "counter", "Longest context so far.", count(longest_));
  add("n_decode_total", "counter", "Forward passes.", count(passes_));
  add("n_busy_slots_per_decode", "gauge", "Requests in a forward pass, on average.",
      ratio(count(busy_), count(passes_)));
  return text + drafts_text("llamacpp:", "", counts_);
}

std::string Metrics::vllm_text(const std::string& model) const {
  const std::string labels = fmt::format("engine=\"0\",model_name=\"{}\"", label_text(model));
  const auto count = [](int64_t value) { return static_cast<double>(value); };
  std::string text;
  const auto add = [&](const char* name, const char* type, const char* help, double value) {
    text += sample((std::string("vllm:") + name).c_str(), type, help, labels, value);
  };
  const auto histogram = [&](const char* name, const char* help, const Histogram& held) {
    text += fmt::format("# HELP vllm:{} {}\n# TYPE vllm:{} histogram\n", name, help, name);
    text += held.text(std::string("vllm:") + name, labels);
  };
  add("prompt_tokens_total", "counter", "Prompt tokens that were run.", count(counts_.prompt_tokens));
  add("generation_tokens_total", "counter", "Generated tokens.", count(counts_.output_tokens));
  add("num_requests_running", "gauge", "Requests that run.", count(gauges_.running));
  add("num_requests_waiting", "gauge", "Requests that wait.", count(gauges_.waiting));
  add("kv_cache_usage_perc", "gauge", "Memory of sequences, of 1.",
      ratio(static_cast<double>(gauges_.sequence_bytes), static_cast<double>(gauges_.sequence_limit)));
  add("prefix_cache_queries_total", "counter", "Prompt tokens looked for in kept sequences.",
      count(counts_.queried_tokens));
  add("prefix_cache_hits_total", "counter", "Prompt tokens found there.", count(counts_.hit_tokens));
  add("num_preemptions_total", "counter", "Requests that were interrupted for others: never.", 0);
  text += drafts_text("vllm:", labels, counts_);
  histogram("time_to_first_token_seconds", "From the request to its first token.", first_token_);
  histogram("inter_token_latency_seconds", "From token to token.", between_tokens_);
  histogram("e2e_request_latency_seconds", "From the request to its end.", whole_);
  histogram("request_queue_time_seconds", "Waiting for a slot.", queue_);
  histogram("request_inference_time_seconds", "In a slot.", inference_);
  histogram("request_prefill_time_seconds", "Reading the prompt.", prompt_);
  histogram("request_decode_time_seconds", "From the first token to the last.", output_);
  text += "# HELP vllm:request_success_total Finished requests.\n# TYPE vllm:request_success_total counter\n";
  for (const char* reason : {"stop", "length", "repetition", "abort"}) {
    const auto found = reasons_.find(reason);
    text += fmt::format("vllm:request_success_total{{{},finished_reason=\"{}\"}} {}\n", labels, reason,
                        found == reasons_.end() ? 0 : found->second);
  }
  return text;
}

std::string Metrics::prometheus(const std::string& model) const {
  const std::lock_guard lock(mutex_);
  const auto count = [](int64_t value) { return static_cast<double>(value); };
  std::string text = llamacpp_text() + vllm_text(model);
  const auto add = [&](const char* name, const char* type, const char* help, double value) {
    text += sample((std::string("strata:") + name).c_str(), type, help, "", value);
  };
  add("requests_total", "counter", "Requests that were taken.", count(counts_.requests));
  add("requests_finished_total", "counter", "Choices that ended by themselves.", count(counts_.finished));
  add("requests_failed_total", "counter", "Choices that ended by an error.", count(counts_.failed));
  add("requests_cancelled_total", "counter", "Choices whose client left.", count(counts_.cancelled));
  add("requests_refused_total", "counter", "Requests that were answered by an error.", count(counts_.refused));
  add("broken_logits_total", "counter", "Choices that failed because logits were not finite.",
      count(gauges_.broken_logits));
  add("steps_total", "counter", "Steps of the scheduler.", count(gauges_.steps));
  add("sequence_bytes", "gauge", "Memory of all sequences.", static_cast<double>(gauges_.sequence_bytes));
  add("kept_sequences", "gauge", "Sequences kept for prompts to come.", count(gauges_.cached_sequences));
  return text;
}

}  // namespace strata::server
