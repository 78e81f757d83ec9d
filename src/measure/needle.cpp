#include "measure/needle.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "evidence/ab_gates.h"
#include "runtime/plan.h"
#include "text/reply_parser.h"

namespace strata {
namespace {

constexpr int64_t kAnswerTokens = 32, kTokensPerKey = 16;  // a sentence; a name and a key of one token a digit

// Of the same size in tokens, and none of the text's own.
std::vector<std::string> other_keys(const NeedlePrompt& prompt) {
  std::vector<std::string> others = prompt.expected;
  for (std::string& key : others)
    while (std::find(prompt.keys.begin(), prompt.keys.end(), key) != prompt.keys.end())
      key.back() = key.back() == '9' ? '0' : static_cast<char>(key.back() + 1);
  return others;
}

void count_drafts(const GenerateResult& made, NeedleResult& result) {
  for (const DraftLength::Position& position : made.drafts) {
    result.drafted += position.tried;
    result.accepted += position.accepted;
  }
}

class NeedleRun {
 public:
  NeedleRun(Engine& engine, const NeedlePlan& plan, NeedleText& text, const GenerateRequest& generation,
            const NeedleHooks& hooks)
      : engine_(engine), plan_(plan), text_(text), generation_(generation), hooks_(hooks) {
    generation_.sampler = {};
    generation_.sampler.temperature = 0;
    generation_.max_tokens = plan.answer_tokens();
  }

  // Texts that begin alike follow each other.
  NeedleResult run() {
    const auto start = std::chrono::steady_clock::now();
    for (const int64_t length : plan_.lengths)
      for (const int64_t depth : plan_.depths) result_.cells.push_back({.length = length, .depth = depth, .wrong = {}});
    for (size_t row = 0; row < plan_.lengths.size(); ++row)
      for (int64_t sample = 0; sample < plan_.samples; ++sample)
        for (size_t column = 0; column < plan_.depths.size(); ++column)
          for (int64_t asked = 0; asked < (plan_.ask_all ? 1 : plan_.markers) && !result_.interrupted; ++asked)
            ask(result_.cells[row * plan_.depths.size() + column], sample, asked);
    result_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return std::move(result_);
  }

 private:
  bool interrupted() const { return hooks_.interrupted != nullptr && hooks_.interrupted->load(); }

  void ask(NeedleCell& cell, int64_t sample, int64_t asked) {
    if (interrupted()) {
      result_.interrupted = true;
      return;
    }
    const NeedleCase which{.length = cell.length,
                           .depth = cell.depth,
                           .sample = sample,
                           .markers = plan_.markers,
                           .asked = asked,
                           .ask_all = plan_.ask_all,
                           .seed = plan_.seed};
    const NeedlePrompt prompt = text_.prompt(which);
    generation_.prompt = prompt.tokens;
    GenerateCallbacks callbacks;
    callbacks.interrupted = hooks_.interrupted;
    callbacks.prompt_progress = [&](int64_t done, int64_t total) {
      if (hooks_.progress) hooks_.progress(result_.prompts, which, done, total);
    };
    std::string bytes;
    callbacks.text = [&](std::string_view more) {
      bytes += more;
      return true;
    };
    const GenerateResult made = engine_.generate(generation_, callbacks);
    if (made.reason == FinishReason::Interrupted) {
      result_.interrupted = true;
      return;
    }
    if (made.reason == FinishReason::MemoryFloor)
      throw Error(ErrorKind::Memory, "free memory fell below the floor (--mem-floor)");
    ++result_.prompts;
    result_.prompt_tokens += static_cast<int64_t>(prompt.tokens.size());
    result_.cached_tokens += made.cached_tokens;
    count_drafts(made, result_);
    judge(cell, which, prompt, bytes);
  }

  void judge(NeedleCell& cell, const NeedleCase& which, const NeedlePrompt& prompt, const std::string& bytes) {
    const text::ParsedReply reply =
        text::parse_reply(bytes, {.starts_in_thinking = prompt.starts_in_thinking, .parse_calls = false, .tools = {}});
    const std::vector<std::string> expected = plan_.control ? other_keys(prompt) : prompt.expected;
    const bool passed = needle_found(reply.content, expected);
    ++cell.asked;
    if (passed) ++cell.passed;
    if (!passed && cell.wrong.size() < kMaxWrongAnswers)
      cell.wrong.push_back(
          {which.sample, which.asked, expected, reply.content.substr(0, kMaxAnswerText), reply.ended_in_thinking});
    if (hooks_.answered) hooks_.answered(which, reply.content, passed);
  }

  Engine& engine_;
  const NeedlePlan& plan_;
  NeedleText& text_;
  GenerateRequest generation_;
  const NeedleHooks& hooks_;
  NeedleResult result_;
};

}  // namespace

int64_t NeedlePlan::prompts() const {
  return static_cast<int64_t>(lengths.size()) * static_cast<int64_t>(depths.size()) * questions();
}

int64_t NeedlePlan::answer_tokens() const {
  return answer > 0 ? answer : kAnswerTokens + (ask_all ? (markers - 1) * kTokensPerKey : 0);
}

void check_needle(const NeedlePlan& plan, const Engine& engine, int64_t context) {
  const Model& model = engine.model();
  const int64_t positions = plan.lengths.back() + plan.answer_tokens();
  const int64_t most = context > 0 ? std::min(context, model.spec().context) : model.spec().context;
  if (positions > most)
    throw Error(ErrorKind::Usage,
                "a prompt of " + std::to_string(plan.lengths.back()) + " tokens and an answer of " +
                    std::to_string(plan.answer_tokens()) + " need " + std::to_string(positions) + " positions, " +
                    (context > 0 && context <= model.spec().context ? "the context given has " : "the model has ") +
                    std::to_string(most) + (context > 0 ? "" : "; --rope-scaling extends them"),
                "--lengths");
  const std::string refusal = engine.memory_refusal(positions);
  if (!refusal.empty()) throw Error(ErrorKind::Memory, refusal, engine.options().model);
}

bool complete(const NeedleCell& cell, const NeedlePlan& plan) { return cell.asked == plan.questions(); }

NeedleVerdict needle_verdict(const NeedleResult& result, const NeedlePlan& plan) {
  bool all = true;
  for (const NeedleCell& cell : result.cells) {
    if (!complete(cell, plan))
      all = false;
    else if (cell.rate() < plan.pass)
      return NeedleVerdict::Fail;
  }
  return all ? NeedleVerdict::Pass : NeedleVerdict::Incomplete;
}

NeedleResult run_needle(Engine& engine, const NeedlePlan& plan, NeedleText& text, const GenerateRequest& generation,
                        const NeedleHooks& hooks) {
  return NeedleRun(engine, plan, text, generation, hooks).run();
}

}  // namespace strata
