#include "runtime/sampler.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"

namespace strata {
namespace {

void check_range(const char* name, double value, double min, double max) {
  if (!(value >= min && value <= max))
    throw Error(ErrorKind::Usage, std::string(name) + " " + std::to_string(value) + " is outside " +
                                      std::to_string(min) + " .. " + std::to_string(max));
}

}  // namespace

LogitsError not_finite(int64_t token, size_t position) {
  return {"the logit of token " + std::to_string(token) + " is not finite; the model file or an arm is broken",
          "position " + std::to_string(position)};
}

bool Sampler::takes_likeliest() const {
  return options_.temperature == 0 && options_.repetition_penalty == 1 && options_.presence_penalty == 0 &&
         options_.frequency_penalty == 0 && options_.logit_bias.empty();
}

Sampler::Sampler(const SamplerOptions& options, std::function<bool(int32_t)> allowed)
    : options_(options), allowed_(std::move(allowed)), random_(options.seed) {
  random_.skip(options.skip);
  check_range("temperature", options.temperature, 0, 100);
  check_range("top-p", options.top_p, 0, 1);
  check_range("min-p", options.min_p, 0, 1);
  check_range("repetition penalty", options.repetition_penalty, 0.01, 100);
  check_range("presence penalty", options.presence_penalty, -100, 100);
  check_range("frequency penalty", options.frequency_penalty, -100, 100);
  for (const auto& [id, bias] : options.logit_bias) check_range("logit bias", bias, -1e6, 1e6);
}

int32_t Sampler::sample(std::span<float> logits, std::span<const int32_t> history, const text::TokenMask* grammar) {
  for (size_t id = 0; id < logits.size(); ++id)
    if (!std::isfinite(logits[id])) throw not_finite(static_cast<int64_t>(id), history.size());
  if (grammar != nullptr && grammar->size() != static_cast<int32_t>(logits.size()))
    throw Error(ErrorKind::Argument, "the grammar's mask has " + std::to_string(grammar->size()) +
                                         " tokens, the logits " + std::to_string(logits.size()));
  if (grammar != nullptr && !grammar->any())
    throw Error(ErrorKind::Argument, "the grammar allows no token here", "position " + std::to_string(history.size()));
  grammar_ = grammar;
  apply_bias(logits);
  apply_penalties(logits, history);
  return options_.temperature == 0 ? greedy(logits) : draw(logits);
}

void Sampler::apply_bias(std::span<float> logits) const {
  for (const auto& [id, bias] : options_.logit_bias)
    if (id >= 0 && static_cast<size_t>(id) < logits.size()) logits[static_cast<size_t>(id)] += bias;
}

void Sampler::apply_penalties(std::span<float> logits, std::span<const int32_t> history) {
  const bool off =
      options_.repetition_penalty == 1 && options_.presence_penalty == 0 && options_.frequency_penalty == 0;
  const size_t wanted = options_.penalty_window < 0 ? history.size() : static_cast<size_t>(options_.penalty_window);
  const size_t size = std::min(wanted, history.size());
  if (off || size == 0) return;
  window_.assign(history.end() - static_cast<int64_t>(size), history.end());
  std::sort(window_.begin(), window_.end());
  for (size_t i = 0; i < window_.size();) {
    const int32_t id = window_[i];
    size_t count = 0;
    for (; i < window_.size() && window_[i] == id; ++i) ++count;
    if (id < 0 || static_cast<size_t>(id) >= logits.size()) continue;
    double logit = logits[static_cast<size_t>(id)];
    logit = logit > 0 ? logit / options_.repetition_penalty : logit * options_.repetition_penalty;
    logit -= options_.presence_penalty + static_cast<double>(count) * options_.frequency_penalty;
    logits[static_cast<size_t>(id)] = static_cast<float>(logit);
  }
}

bool Sampler::may_choose(size_t id) const {
  const auto token = static_cast<int32_t>(id);
  return (grammar_ == nullptr || grammar_->test(token)) && (!allowed_ || allowed_(token));
}

int32_t Sampler::greedy(std::span<const float> logits) const {
  int32_t best = -1;
  for (size_t id = 0; id < logits.size(); ++id) {
    if (best >= 0 && logits[id] <= logits[static_cast<size_t>(best)]) continue;
    if (may_choose(id)) best = static_cast<int32_t>(id);
  }
  if (best < 0) throw Error(ErrorKind::Model, "no token may be sampled");
  return best;
}

// Order of the filters: top-k, top-p, min-p, then the temperature.
int32_t Sampler::draw(std::span<const float> logits) {
  candidates_.clear();
  for (size_t id = 0; id < logits.size(); ++id)
    if (may_choose(id)) candidates_.push_back({static_cast<int32_t>(id), logits[id]});
  if (candidates_.empty()) throw Error(ErrorKind::Model, "no token may be sampled");
  auto better = [](const Candidate& a, const Candidate& b) {
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
  };
  const bool limited = options_.top_k > 0 && static_cast<size_t>(options_.top_k) < candidates_.size();
  const size_t kept = limited ? static_cast<size_t>(options_.top_k) : candidates_.size();
  std::partial_sort(candidates_.begin(), candidates_.begin() + static_cast<int64_t>(kept), candidates_.end(), better);
  candidates_.resize(kept);

  const double best = candidates_[0].logit;
  double total = 0;
  for (const Candidate& c : candidates_) total += std::exp(c.logit - best);
  size_t count = 0;
  for (double sum = 0; count < candidates_.size() && (count == 0 || sum < options_.top_p * total); ++count) {
    const double weight = std::exp(candidates_[count].logit - best);
    if (count > 0 && weight < options_.min_p) break;  // relative to the best, whose weight is 1
    sum += weight;
  }
  double scaled = 0;
  for (size_t i = 0; i < count; ++i) scaled += std::exp((candidates_[i].logit - best) / options_.temperature);
  double point = random_.uniform() * scaled;
  for (size_t i = 0; i + 1 < count; ++i) {
    point -= std::exp((candidates_[i].logit - best) / options_.temperature);
    if (point < 0) return candidates_[i].id;
  }
  return candidates_[count - 1].id;
}

}  // namespace strata
