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
#include "runtime/request.h"
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
  uint64_t memory_floor = 0;         // bytes that stay free: a run that would go below is refused, one that does ends
  CpuFeatures cpu = cpu_features();  // what arms may use
  bool strict_arms = false;
  std::vector<std::pair<std::string, std::string>> arms;  // operator, arm
  Profiler* profiler = nullptr;                           // outlives the engine; null: nothing is measured
};

class Slot;

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

 private:
  int64_t context_for(const GenerateRequest& request) const;
  void load_tokenizer();
  void check_memory(int64_t context) const;
  void step(Slot& slot);  // one forward pass

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
