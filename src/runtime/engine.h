// Engine: a model, its tokenizer and the threads that run it. Several engines may live in one process.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/profile.h"
#include "device/device.h"
#include "model/forward.h"
#include "model/model.h"
#include "runtime/sampler.h"
#include "text/grammar.h"
#include "text/tokenizer.h"

namespace strata {

struct EngineOptions {
  std::string model;          // path of a GGUF file
  int threads = 0;            // 0: one per core
  int64_t micro_batch = 512;  // prompt tokens computed at a time; results do not depend on it
  RopeOverride rope;
  ForwardOptions forward;
  CacheOptions caches;
  CpuFeatures cpu = cpu_features();  // what arms may use
  bool strict_arms = false;
  std::vector<std::pair<std::string, std::string>> arms;  // operator, arm
  Profiler* profiler = nullptr;                           // outlives the engine; null: nothing is measured
};

enum class FinishReason {
  EndOfText,  // the model ended its reply
  StopString,
  Length,       // as many tokens as asked for, or the context is full
  Interrupted,  // the caller asked to stop; what was generated is in the result
};
const char* to_string(FinishReason reason);

struct GenerateRequest {
  std::vector<int32_t> prompt;
  int64_t max_tokens = -1;  // -1: until the model ends or the context is full
  int64_t context = 0;      // positions; 0: what prompt and max_tokens need, at most what the model was trained for
  SamplerOptions sampler;
  std::vector<std::string> stop;
  bool ignore_end = false;               // go on past the end of the text
  std::optional<text::Grammar> grammar;  // the output is a text of it, or the beginning of one; it ends when complete
};

struct GenerateCallbacks {
  std::function<bool(std::string_view)> text;  // bytes ready to be shown; false ends the output, as a stop string does
  std::function<void(int64_t done, int64_t total)> prompt_progress;
  const std::atomic<bool>* interrupted = nullptr;  // checked between steps
};

struct GenerateResult {
  std::vector<int32_t> tokens;
  FinishReason reason = FinishReason::Length;
  double prompt_seconds = 0, output_seconds = 0;  // output: after the first token, which the prompt's last logits give
};

class Engine {
 public:
  Engine(const EngineOptions& options, Log& log);  // Error{File, Format, Model, Usage}

  const Model& model() const { return model_; }
  Forward& forward() { return forward_; }
  Queue& queue() { return queue_; }
  // Error{Model} when the file has no tokenizer.
  const text::Tokenizer& tokenizer() const;
  bool has_tokenizer() const { return tokenizer_ != nullptr; }
  const text::TokenTrie& token_trie();  // made when it is first asked for; Error{Model} as tokenizer()

  // Error{Argument} for an empty prompt, one longer than the context, or an id outside the vocabulary.
  GenerateResult generate(const GenerateRequest& request, const GenerateCallbacks& callbacks = {});

  // Runs a prompt in micro-batches; logits [1, V] of its last token. False: interrupted before the end.
  bool read_prompt(std::span<const int32_t> prompt, Sequence& state, const Tensor& logits,
                   const GenerateCallbacks& callbacks);

 private:
  int64_t context_for(const GenerateRequest& request) const;
  void load_tokenizer();

  EngineOptions options_;
  std::optional<ProfileSpan> loading_;  // open while the constructor runs
  Log& log_;
  Model model_;
  Queue queue_;
  Forward forward_;
  std::unique_ptr<text::Tokenizer> tokenizer_;
  std::optional<text::TokenTrie> token_trie_;
};

}  // namespace strata
