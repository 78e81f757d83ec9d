// Models of random weights: any architecture and size, with a real tokenizer. They compute nonsense at the speed, in
// the memory and through the operators of a trained model of that shape.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/gguf.h"
#include "gguf/quant_scheme.h"

namespace strata {

// 0 where an architecture has no use for a number.
struct SynthShape {
  std::string name, arch;
  int layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0;
  int rotary = 0;      // rotated dimensions of a head; 0: all of them, a quarter in hybrids
  int inner = 0;       // of the dense MLP
  int context = 4096;  // positions it claims to be trained for
  double rope_base = 10000;
  bool tied = false;   // the embedding is the head
  int vocabulary = 0;  // 0: the tokenizer's

  int experts = 0, experts_used = 0, expert_inner = 0, shared_inner = 0;
  int key_heads = 0, value_heads = 0, state_size = 0;  // delta net; dk = dv
  int interval = 4;                                    // every interval-th layer is attention
  int streams = 0, low_rank = 0;                       // hyper-connections
  int index_heads = 0, index_dim = 0, index_budget = 0, index_ratio = 0;
  int ngram_heads = 0;  // per order, orders 2 and 3; 0: no n-gram table
  int ngram_base = 0;   // the least head size: about a sixteenth of the table's rows with 8 heads
  int mtp = 0;          // MTP blocks
};

// qwen3-0.6b, qwen35-0.8b, qwen35-9b, qwen3-30b-a3b, qwen4exp-mini, qwen4exp-flash: published shapes, and that of the
// default model.
std::optional<SynthShape> named_synth_shape(std::string_view name);
std::string synth_shape_names();
// A few layers of an architecture, some megabytes. Error{Usage} naming the known ones.
SynthShape small_synth_shape(const std::string& arch);

struct SynthOptions {
  SynthShape shape;
  gguf::QuantScheme scheme;
  std::string tokenizer;  // GGUF file to copy tokenizer.* from; the vocabulary is padded with [PADn]
  uint64_t seed = 0;
  int threads = 0;  // 0: one per core. The bytes do not depend on it
  std::function<void(uint64_t done, uint64_t total, const std::string& tensor)> progress;  // may be empty
  const std::atomic<bool>* cancelled = nullptr;  // polled; Error{Interrupted} when it becomes true
};

struct SynthSummary {
  uint64_t tensors = 0, parameters = 0, bytes = 0;
};

// Writes `output`, or nothing at all; memory does not grow with the model. Error{Usage} for a shape that cannot be,
// {File}, {Model} (no tokenizer, or one larger than the vocabulary), {Interrupted}.
SynthSummary write_synth(const std::string& output, const SynthOptions& options);

// The same without writing.
SynthSummary plan_synth(const SynthOptions& options);

}  // namespace strata
