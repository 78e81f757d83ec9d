#include "runtime/engine.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "runtime/vocabulary.h"
#include "text/stream.h"

namespace strata {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

int thread_count(int wanted) { return wanted > 0 ? wanted : list_devices().front().cores; }

bool interrupted(const GenerateCallbacks& callbacks) {
  return callbacks.interrupted != nullptr && callbacks.interrupted->load(std::memory_order_relaxed);
}

Model load_model(const EngineOptions& options) {
  const ProfileSpan span(options.profiler, "model", "host");
  return Model::load(options.model, options.rope);
}

// Token bytes to what a reader sees: whole characters, up to a stop string.
class Output {
 public:
  Output(const GenerateRequest& request, const GenerateCallbacks& callbacks)
      : stops_(request.stop), show_(callbacks.text) {}
  bool push(std::string_view bytes) {  // false: a stop string was met, or the reader has enough
    return release(stops_.push(characters_.push(bytes))) && !stops_.stopped();
  }
  void finish() {
    release(stops_.push(characters_.finish()));
    if (!stops_.stopped()) release(stops_.finish());
  }

 private:
  bool release(const std::string& text) const { return !show_ || text.empty() || show_(text); }
  text::Utf8Stream characters_;
  text::StopStrings stops_;
  const std::function<bool(std::string_view)>& show_;
};

// The tokens that a grammar allows at each step; everything when there is none.
class Constraint {
 public:
  Constraint() = default;
  Constraint(const text::Grammar& grammar, const text::TokenTrie& trie, bool ignore_end)
      : state_(std::in_place, grammar, trie), ends_(ignore_end ? trie.data().ends : std::vector<int32_t>()) {}

  bool complete() const { return state_ && state_->finished(); }
  const text::TokenMask* allowed() {
    if (!state_) return nullptr;
    state_->allowed_tokens(mask_);
    for (const int32_t id : ends_) mask_.reset(id);
    return &mask_;
  }
  void accept(int32_t token) {
    if (state_) state_->accept(token);
  }

 private:
  std::optional<text::GrammarState> state_;
  std::vector<int32_t> ends_;  // tokens not to choose: the text goes on past them
  text::TokenMask mask_;
};

}  // namespace

const char* to_string(FinishReason reason) {
  switch (reason) {
    case FinishReason::EndOfText: return "end of text";
    case FinishReason::StopString: return "stop string";
    case FinishReason::Length: return "length";
    case FinishReason::Interrupted: return "interrupted";
  }
  return "unknown";
}

Engine::Engine(const EngineOptions& options, Log& log)
    : options_(options),
      loading_(std::in_place, options.profiler, Stage::Load),
      log_(log),
      model_(load_model(options)),
      queue_(thread_count(options.threads), log),
      forward_(model_, queue_, options.forward) {
  if (options.micro_batch < 1 || options.micro_batch > 65536)
    throw Error(ErrorKind::Usage, "a micro-batch has 1 to 65536 tokens, not " + std::to_string(options.micro_batch));
  check_cache_types(model_.spec(), options.caches);
  queue_.cpu = options.cpu;
  queue_.strict_arms = options.strict_arms;
  queue_.profiler = options.profiler;
  for (const auto& [op, arm] : options.arms) queue_.request_arm(op, arm);
  load_tokenizer();
  loading_.reset();
}

void Engine::load_tokenizer() {
  const ProfileSpan span(options_.profiler, "tokenizer", "host");
  if (!strata::has_tokenizer(model_.file())) return;
  tokenizer_ = std::make_unique<text::Tokenizer>(read_tokenizer(model_.file()));
  if (tokenizer_->size() != model_.spec().vocabulary)
    throw Error(ErrorKind::Model,
                "the tokenizer has " + std::to_string(tokenizer_->size()) + " tokens, the embedding " +
                    std::to_string(model_.spec().vocabulary) + " rows",
                options_.model);
}

const text::Tokenizer& Engine::tokenizer() const {
  if (tokenizer_ == nullptr) read_vocabulary(model_.file());  // throws the reason
  return *tokenizer_;
}

const text::TokenTrie& Engine::token_trie() {
  if (!token_trie_) token_trie_.emplace(tokenizer());
  return *token_trie_;
}

int64_t Engine::context_for(const GenerateRequest& request) const {
  const auto prompt = static_cast<int64_t>(request.prompt.size());
  const int64_t trained = model_.spec().context;
  int64_t context = request.context;
  if (context <= 0) {
    context = request.max_tokens < 0 ? trained : std::min(trained, prompt + request.max_tokens);
    if (prompt >= trained) context = trained;
  }
  if (prompt > context)
    throw Error(ErrorKind::Argument, "the prompt has " + std::to_string(prompt) + " tokens, the context " +
                                         std::to_string(context) + ": shorten it or ask for a larger context (-c)");
  return std::max<int64_t>(context, 1);
}

bool Engine::read_prompt(std::span<const int32_t> prompt, Sequence& state, const Tensor& logits,
                         const GenerateCallbacks& callbacks) {
  const size_t step = static_cast<size_t>(options_.micro_batch);
  for (size_t done = 0; done < prompt.size();) {
    if (interrupted(callbacks)) return false;
    const size_t count = std::min(step, prompt.size() - done);
    const bool last = done + count == prompt.size();
    const ProfileSpan span(queue_.profiler, Stage::Prompt, static_cast<int64_t>(count));
    forward_.run(prompt.subspan(done, count), state, last ? logits : Tensor{});
    done += count;
    if (callbacks.prompt_progress)
      callbacks.prompt_progress(static_cast<int64_t>(done), static_cast<int64_t>(prompt.size()));
  }
  return true;
}

GenerateResult Engine::generate(const GenerateRequest& request, const GenerateCallbacks& callbacks) {
  if (request.prompt.empty()) throw Error(ErrorKind::Argument, "the prompt is empty: give text to continue");
  const int64_t context = context_for(request);
  model_.file().check_sizes();
  Sequence state(model_.spec(), context, options_.caches);
  Sampler sampler(request.sampler, [this](int32_t id) { return !tokenizer_ || tokenizer_->may_be_sampled(id); });
  Constraint constraint;
  if (request.grammar) constraint = Constraint(*request.grammar, token_trie(), request.ignore_end);
  const Buffer memory(static_cast<size_t>(model_.spec().vocabulary) * sizeof(float));
  const Tensor logits = memory.f32({1, model_.spec().vocabulary});

  GenerateResult result;
  Output output(request, callbacks);
  const auto start = std::chrono::steady_clock::now();
  const bool read = read_prompt(request.prompt, state, logits, callbacks);
  result.prompt_seconds = seconds_since(start);
  if (!read) {
    result.reason = FinishReason::Interrupted;
    return result;
  }

  std::vector<int32_t> history = request.prompt;
  const auto output_start = std::chrono::steady_clock::now();
  while (!constraint.complete() &&
         (request.max_tokens < 0 || static_cast<int64_t>(result.tokens.size()) < request.max_tokens)) {
    if (interrupted(callbacks)) {
      result.reason = FinishReason::Interrupted;
      break;
    }
    ProfileSpan step(queue_.profiler, Stage::Decode);
    int32_t token = 0;
    {
      const ProfileSpan span(queue_.profiler, "sample", "host");
      token =
          sampler.sample({logits.f32(), static_cast<size_t>(model_.spec().vocabulary)}, history, constraint.allowed());
      constraint.accept(token);
    }
    history.push_back(token);
    result.tokens.push_back(token);
    if (tokenizer_ && !request.ignore_end && tokenizer_->ends_generation(token)) {
      result.reason = FinishReason::EndOfText;
      break;
    }
    if (tokenizer_ && !output.push(tokenizer_->bytes(token))) {
      result.reason = FinishReason::StopString;
      break;
    }
    if (constraint.complete() || state.length() == state.capacity()) break;
    const bool more = request.max_tokens < 0 || static_cast<int64_t>(result.tokens.size()) < request.max_tokens;
    if (!more) break;
    forward_.run({&token, 1}, state, logits);
    step.add_tokens(1);
  }
  if (constraint.complete() && result.reason == FinishReason::Length) result.reason = FinishReason::EndOfText;
  result.output_seconds = seconds_since(output_start);
  if (result.reason != FinishReason::StopString) output.finish();
  return result;
}

}  // namespace strata
