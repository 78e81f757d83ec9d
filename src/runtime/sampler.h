// From logits to a token. The same logits, history and seed give the same token on every machine.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "text/token_trie.h"

namespace strata {

struct SamplerOptions {
  double temperature = 0;         // 0: greedy
  int64_t top_k = 40;             // 0: off
  double top_p = 0.95;            // 1: off
  double min_p = 0.05;            // 0: off
  double repetition_penalty = 1;  // 1: off; a positive logit is divided by it, a negative one multiplied
  double presence_penalty = 0;    // subtracted once from the logit of every token of the window
  double frequency_penalty = 0;   // subtracted once per occurrence
  int64_t penalty_window = 64;    // last tokens that the penalties look at, prompt included; -1: all, 0: none
  std::vector<std::pair<int32_t, float>> logit_bias = {};  // token, what is added to its logit
  uint64_t seed = 0;
  uint64_t skip = 0;  // random numbers of the seed that an earlier run used
};

// Logits that are NaN or infinite.
struct LogitsError : Error {
  LogitsError(const std::string& message, const std::string& where) : Error(ErrorKind::Model, message, where) {}
};

LogitsError not_finite(int64_t token, size_t position);

class Sampler {
 public:
  // `allowed(id)` false: the token is never chosen (padding). Error{Usage} for values out of range.
  Sampler(const SamplerOptions& options, std::function<bool(int32_t)> allowed = {});

  bool takes_likeliest() const;  // whatever came before: the largest logit alone decides

  // Chooses a token; ties go to the lower id. history: every token so far, prompt included. logits are changed by the
  // penalties. Error{Model} when a logit is NaN or infinite, or when no token is allowed: the model or an arm is
  // broken, and its text would be noise. grammar: only these tokens are candidates; Error{Argument} when there is none.
  int32_t sample(std::span<float> logits, std::span<const int32_t> history, const text::TokenMask* grammar = nullptr);

 private:
  struct Candidate {
    int32_t id;
    float logit;
  };
  void apply_bias(std::span<float> logits) const;
  void apply_penalties(std::span<float> logits, std::span<const int32_t> history);
  bool may_choose(size_t id) const;
  int32_t greedy(std::span<const float> logits) const;
  int32_t draw(std::span<const float> logits);

  SamplerOptions options_;
  const text::TokenMask* grammar_ = nullptr;  // of the call in progress
  std::function<bool(int32_t)> allowed_;
  Random random_;
  std::vector<int32_t> window_;
  std::vector<Candidate> candidates_;
};

}  // namespace strata
