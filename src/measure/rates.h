// Rates of a model over prompt lengths: one-shot runs, as a table of a report needs them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/engine.h"

namespace strata {

struct RatesPlan {
  std::vector<int64_t> lengths;  // of prompts in tokens, ascending
  int64_t generate = 256;        // tokens after each prompt
  int64_t repetitions = 1;       // runs of a cell
  double limit = 0;              // seconds that a cell may take; 0: no limit
  uint64_t seed = 1;             // of the tokens that prompts are made of, unless they are a text's
  bool warm_up = true;           // a short run first, so that weights are in memory
};

struct RatesRun {
  double prompt_seconds = 0;  // from the request to the logits of the last prompt token
  double output_seconds = 0;  // from there to the last token
  int64_t output_tokens = 0;  // fewer than planned: the cell's limit came first, and output has no rate
  int64_t drafted = 0, accepted = 0;
  std::string output;              // hash of the tokens
  std::vector<std::string> flags;  // disturbances
};

struct RatesCell {
  int64_t length = 0;         // of the column
  int64_t prompt_tokens = 0;  // fewer where the output would not fit into the model's context otherwise; 0: not run
  std::vector<RatesRun> runs;
  std::string missing;  // why there is no rate, or none of the output; empty: everything was measured
  bool failed = false;  // because of an error
};
// Tokens a second, median of the runs; none: not measured. The first output token comes from the prompt's logits and
// has no time of its own.
std::optional<double> prompt_rate(const RatesCell& cell);
std::optional<double> output_rate(const RatesCell& cell, const RatesPlan& plan);

// The prompt that a column of `length` means on a model of `context` positions: shorter by what the output lacks, where
// the prompt alone fits. None: too long for the model.
std::optional<int64_t> rates_prompt(int64_t length, int64_t generate, int64_t context);

struct RatesHooks {
  const std::atomic<bool>* interrupted = nullptr;
  std::function<void(const RatesCell& cell, int64_t run, const char* what, int64_t done, int64_t total)> progress;
  // What a raw log holds besides the cell: the tokens of a run as soon as it ends.
  std::function<void(const RatesCell& cell, const std::vector<int32_t>& output)> ran;
  std::function<void(const RatesCell&)> cell;  // when it is over
};

// Every length of the plan as a cell, in ascending order. Prompts are token_trace(), or `text` repeated as needed.
// `drafts`: draft and draft_max alone count. The engine keeps no prompts. Cells that cannot run say why; after an
// interruption the remaining ones do. Once a prompt takes longer than the limit, longer ones are not tried.
std::vector<RatesCell> run_rates(Engine& engine, const RatesPlan& plan, const GenerateRequest& drafts,
                                 const std::vector<int32_t>& text, const RatesHooks& hooks = {});

}  // namespace strata
