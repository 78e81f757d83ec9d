// Perplexity of a text: llama-perplexity's chunks, scored in float64. The logits depend on the tokens alone, whatever
// the micro-batch and the number of threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "measure/logits_file.h"
#include "runtime/engine.h"

namespace strata {

// Whole chunks of a text.
struct ChunkedText {
  ChunkLayout layout;
  std::vector<int32_t> tokens;   // as many as the chunks have
  std::optional<int32_t> first;  // takes the place of each chunk's first token: BOS where the vocabulary asks for it

  int64_t chunks() const { return static_cast<int64_t>(tokens.size()) / layout.context; }
};

// The first chunks of `tokens`, at most `limit` (-1: all). Error{Argument} when there is not one.
ChunkedText cut_chunks(std::vector<int32_t> tokens, int64_t context, int64_t limit);
// The BOS that the vocabulary puts before every text.
std::optional<int32_t> begin_token(const text::Tokenizer& tokenizer);

// Scored positions that were just computed, in order.
struct ScoredRows {
  int64_t first = 0;              // the first of them, counted through all chunks
  std::span<const float> logits;  // f32 [n, V]
};

struct PerplexityHooks {
  std::function<void(const ScoredRows&)> rows;
  std::function<void(int64_t chunks)> chunk;                  // so many are complete
  std::function<void(int64_t done, int64_t total)> progress;  // tokens
  const std::atomic<bool>* interrupted = nullptr;
};

struct PerplexityRun {
  enum class End { Complete, Interrupted, MemoryFloor };
  std::vector<double> nll;  // -ln p of the token after each scored position
  int64_t chunks = 0;       // complete ones
  int64_t tokens = 0;       // computed
  double seconds = 0;
  End end = End::Complete;
};

// Fills `run` as it goes, so that hooks see what there is. Error{Model} naming the position when logits are no numbers;
// Error{Memory}; whatever a hook throws.
void run_perplexity(Engine& engine, const ChunkedText& text, const PerplexityHooks& hooks, PerplexityRun& run);

// Settings that change bits (docs/reproducibility.md), a line "name: value" each.
std::string bit_settings(const Engine& engine);

}  // namespace strata
