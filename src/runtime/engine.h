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
#include "runtime/prompt_cache.h"
#include "runtime/request.h"
#include "runtime/slot.h"
#include "text/grammar.h"
#include "text/tokenizer.h"

namespace strata {

struct EngineOptions {
  std::string model;               // path of a GGUF file
  std::string device = "cpu";      // where operators run, and weights and caches lie: as open_accelerator()
  int threads = 0;                 // 0: one per core, or per processor of the placement
  ThreadPlacement placement = {};  // of threads that compute on the CPU
  bool read_ahead = false;         // the threads read all weights into memory before the first run
  int64_t micro_batch = 512;       // prompt tokens computed at a time; results do not depend on it
  RopeOverride rope;
  ForwardOptions forward;
  CacheOptions caches;
  std::string tier_folder = kDefaultTierFolder;  // of the file for keys and values, with caches.resident
  uint64_t sequence_bytes = 0;                   // memory of all sequences at most; 0: no limit
  uint64_t prompt_cache_bytes = 0;   // sequences are kept for prompts to come while all take less; 0: none is kept
  uint64_t memory_floor = 0;         // bytes that stay free: a run that would go below is refused, one that does ends
  CpuFeatures cpu = cpu_features();  // what arms may use
  bool strict_arms = false;
  std::vector<std::pair<std::string, std::string>> arms;  // operator, arm
  Profiler* profiler = nullptr;                           // outlives the engine; null: nothing is measured
};

// A sequence that goes on in another run, and its tokens: the sequence holds the first of them, in general all but the
// newest.
struct HeldSequence {
  std::vector<int32_t> tokens;
  std::optional<Sequence> sequence;
};

class Engine {
 public:
  Engine(const EngineOptions& options, Log& log);  // Error{File, Format, Model, Usage, Device, Memory}

  const Model& model() const { return model_; }
  Forward& forward() { return forward_; }
  Queue& queue() { return queue_; }
  // Error{Model} when the file has no tokenizer.
  const text::Tokenizer& tokenizer() const;
  bool has_tokenizer() const { return tokenizer_ != nullptr; }
  const text::TokenTrie& token_trie();  // made when it is first asked for; Error{Model} as tokenizer()

  // Error{Argument} for an empty prompt, one longer than the context, or an id outside the vocabulary. `held`: a
  // sequence to go on from when the prompt begins with its tokens; it is replaced by the one of this run.
  GenerateResult generate(const GenerateRequest& request, const GenerateCallbacks& callbacks = {},
                          HeldSequence* held = nullptr);

  // The parts of generate(), for who drives several requests. open: errors as generate(). close: the result of a slot
  // that is done; its sequence goes to the prompt cache.
  std::unique_ptr<Slot> open(const GenerateRequest& request, const GenerateCallbacks& callbacks,
                             HeldSequence* held = nullptr);
  GenerateResult close(Slot& slot, HeldSequence* held = nullptr);
  void check(const GenerateRequest& request) const;  // the errors of open() that do not depend on memory
  // Takes the memory of the segment's rows, from kept sequences when there is no other. Error{Memory}.
  void reserve(Slot& slot, const Segment& segment);

  bool below_memory_floor() const;  // running requests have to end
  // Why a sequence of so many positions does not fit where the engine keeps it; empty: it does.
  std::string memory_refusal(int64_t context) const;

  const EngineOptions& options() const { return options_; }
  PagePool& pool() { return pool_; }
  PromptCache* prompt_cache() { return cache_ ? &*cache_ : nullptr; }  // null: there is none
  const PromptCache* prompt_cache() const { return cache_ ? &*cache_ : nullptr; }

 private:
  int64_t context_for(const GenerateRequest& request) const;
  Sequence begin_sequence(const GenerateRequest& request, HeldSequence* held);
  template <class Work>
  auto with_memory(Work&& work);
  void load_tokenizer();
  void read_weights_ahead(Log& log);
  void check_memory(int64_t context) const;

  EngineOptions options_;
  std::optional<ProfileSpan> loading_;  // open while the constructor runs
  Model model_;
  Queue queue_;
  Forward forward_;
  PagePool pool_;
  std::optional<PromptCache> cache_;
  std::unique_ptr<text::Tokenizer> tokenizer_;
  std::optional<text::TokenTrie> token_trie_;
};

}  // namespace strata
