// Needle test of a whole model: keys in long texts, asked for greedily; an answer is right or wrong, nothing between.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "evidence/ab.h"
#include "measure/needle_text.h"
#include "runtime/engine.h"

namespace strata {

struct NeedlePlan {
  std::vector<int64_t> lengths;  // of prompts in tokens, ascending
  std::vector<int64_t> depths;   // 0 .. 100 per cent, ascending
  int64_t samples = 1;           // texts of each cell
  int64_t markers = 1;           // keys in each text
  bool ask_all = false;          // all of them in one question; else one by one, each at the cell's depth
  int64_t answer = 0;            // tokens of an answer at most; 0: what the keys need
  uint64_t seed = 1;
  double pass = 1;       // share of right answers that a cell needs
  bool control = false;  // texts hold other keys than those that are expected: every answer has to be wrong

  int64_t questions() const { return samples * (ask_all ? 1 : markers); }  // of a cell
  int64_t prompts() const;
  int64_t answer_tokens() const;
};

// Error{Usage, Memory} for a plan that cannot run on this model: lengths beyond its context or `context` (0: not
// given), or more memory than there is.
void check_needle(const NeedlePlan& plan, const Engine& engine, int64_t context);

struct NeedleAnswer {
  int64_t sample = 0, marker = 0;  // marker: the first one, when all are asked for
  std::vector<std::string> expected;
  std::string text;       // without thoughts; cut to kMaxAnswerText bytes
  bool thinking = false;  // it ended within its thoughts
};
inline constexpr size_t kMaxAnswerText = 400, kMaxWrongAnswers = 100;  // kept of a cell

struct NeedleCell {
  int64_t length = 0, depth = 0;
  int64_t asked = 0, passed = 0;
  std::vector<NeedleAnswer> wrong;  // the first kMaxWrongAnswers
  double rate() const { return asked > 0 ? static_cast<double>(passed) / static_cast<double>(asked) : 0; }
};

struct NeedleResult {
  std::vector<NeedleCell> cells;  // [lengths, depths]
  int64_t prompts = 0, prompt_tokens = 0, cached_tokens = 0;
  int64_t drafted = 0, accepted = 0;
  double seconds = 0;
  bool interrupted = false;
};
// A cell with fewer answers than planned did not finish.
bool complete(const NeedleCell& cell, const NeedlePlan& plan);
enum class NeedleVerdict : uint8_t { Pass, Fail, Incomplete };
// Fail: a cell below the plan's share; Incomplete: none, but some did not finish.
NeedleVerdict needle_verdict(const NeedleResult& result, const NeedlePlan& plan);

struct NeedleHooks {
  const std::atomic<bool>* interrupted = nullptr;
  std::function<void(int64_t prompt, const NeedleCase& which, int64_t done, int64_t total)> progress;
  std::function<void(const NeedleCase& which, const std::string& answer, bool passed)> answered;
};

// `generation`: drafts; sampling is greedy whatever it says. `text` makes the prompts. An interruption keeps the
// answers so far.
NeedleResult run_needle(Engine& engine, const NeedlePlan& plan, NeedleText& text, const GenerateRequest& generation,
                        const NeedleHooks& hooks = {});

// Reports. `facts`: model, device, program, form and settings, for people and records.
std::string needle_table(const NeedleResult& result, const NeedlePlan& plan);
std::string needle_csv(const NeedleResult& result, const NeedlePlan& plan);
std::string needle_json(const NeedleResult& result, const NeedlePlan& plan, const NamedValues& facts,
                        const NamedValues& settings);
std::string needle_svg(const NeedleResult& result, const NeedlePlan& plan, const std::string& model,
                       const std::string& subtitle);

}  // namespace strata
