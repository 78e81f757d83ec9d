#include "runtime/engine.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <limits>

#include "base/error.h"
#include "runtime/plan.h"
#include "runtime/scheduler.h"
#include "runtime/vocabulary.h"

namespace strata {
namespace {

int thread_count(const EngineOptions& options) {
  if (options.threads > 0) return options.threads;
  const ProcessorSet& processors = options.placement.processors;
  return processors.empty() ? list_devices().front().cores : processors.count();
}

std::string mebibytes(uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

Model load_model(const EngineOptions& options) {
  const ProfileSpan span(options.profiler, "model", "host");
  return Model::load(options.model, options.rope);
}

Queue make_queue(const EngineOptions& options, Log& log) {
  if (options.device == "cpu") return {thread_count(options), log, options.placement};
  if (options.caches.resident > 0)
    throw Error(ErrorKind::Usage, "keys and values in a file are for the CPU: leave out --kv-resident, or --device",
                "--kv-resident");
  return {open_accelerator(options.device), log};
}

PagePool make_pool(const EngineOptions& options, const Queue& queue) {
  const uint64_t limit = options.sequence_bytes > 0 ? options.sequence_bytes : std::numeric_limits<uint64_t>::max();
  PagePool pool(limit, queue.space());
  if (options.caches.resident > 0) check_tier_folder(options.tier_folder);
  pool.set_folder(options.tier_folder);
  return pool;
}

}  // namespace

Engine::Engine(const EngineOptions& options, Log& log)
    : options_(options),
      loading_(std::in_place, options.profiler, Stage::Load),
      model_(load_model(options)),
      queue_(make_queue(options, log)),
      forward_(model_, queue_, options.forward),
      pool_(make_pool(options, queue_)) {
  if (options.prompt_cache_bytes > 0) cache_.emplace(pool_, options.prompt_cache_bytes);
  if (options.micro_batch < 1 || options.micro_batch > 65536)
    throw Error(ErrorKind::Usage, "a micro-batch has 1 to 65536 tokens, not " + std::to_string(options.micro_batch));
  check_cache_types(model_.spec(), options.caches);
  if (queue_.accelerator() != nullptr) options_.forward.activations = Activations::F32;  // what it computes with
  queue_.cpu = options.cpu;
  queue_.strict_arms = options.strict_arms;
  queue_.profiler = options.profiler;
  for (const auto& [op, arm] : options.arms) queue_.request_arm(op, arm);
  load_tokenizer();
  if (options.read_ahead && queue_.accelerator() == nullptr) read_weights_ahead(log);
  model_.place(queue_.space());
  if (tokenizer_ && queue_.accelerator() != nullptr)  // the host's sampler asks for itself
    forward_.allow([this](int32_t id) { return tokenizer_->may_be_sampled(id); });
  loading_.reset();
  if (const std::string scaling = describe_rope(model_.spec()); !scaling.empty()) log.info("RoPE: " + scaling);
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

// Each thread reads parts of every file: with several memory nodes their pages lie where threads read them first.
void Engine::read_weights_ahead(Log& log) {
  const ProfileSpan span(options_.profiler, "weights", "host");
  const auto start = std::chrono::steady_clock::now();
  const uint64_t bytes = model_.file().file_bytes();
  if (const uint64_t available = free_memory_bytes(); available > 0 && bytes > available)
    log.warn(mebibytes(bytes) + " of weights do not fit the free memory of " + mebibytes(available) +
             ": what is read ahead may be dropped before it is used");
  log.info("reading " + mebibytes(bytes) + " of weights ahead, " + std::to_string(queue_.pool().threads()) +
           " threads");
  const ThreadAffinity placed = queue_.pool().place_caller();
  model_.file().read_ahead(queue_.pool());
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  log.info("read " + mebibytes(bytes) + " of weights ahead in " + std::to_string(std::lround(seconds * 1000)) + " ms");
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

void Engine::check(const GenerateRequest& request) const {
  if (request.prompt.empty()) throw Error(ErrorKind::Argument, "the prompt is empty: give text to continue");
  context_for(request);
  for (const int32_t token : request.prompt)
    if (token < 0 || token >= model_.spec().vocabulary)
      throw Error(ErrorKind::Argument, "token " + std::to_string(token) + " is outside the vocabulary of " +
                                           std::to_string(model_.spec().vocabulary));
  const bool serial = model_.spec().delta.value_heads > 0 && !options_.caches.anchored;
  for (const auto& [op, arm] : options_.arms)
    if (request.draft != DraftKind::None && serial && op == "gated_delta" && arm.starts_with("wy"))
      throw Error(ErrorKind::Usage, "the arm " + arm +
                                        " of gated_delta takes nothing back, so it cannot run drafts: "
                                        "leave out --draft, or take another arm");
}

// Runs work, and again for each kept sequence that is dropped for its memory.
template <class Work>
auto Engine::with_memory(Work&& work) {
  for (;;) try {
      return work();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::Memory || !cache_ || !cache_->evict()) throw;
    }
}

// The longest sequence at hand that holds a beginning of the prompt, or a new one.
Sequence Engine::begin_sequence(const GenerateRequest& request, HeldSequence* held) {
  const int64_t context = context_for(request);
  std::optional<PromptCache::Hit> hit;
  if (cache_ && !request.embed) hit = cache_->find(request.prompt);  // what is kept has no hidden states
  if (held != nullptr && held->sequence && !request.embed) {
    const int64_t length = held->sequence->length();
    const bool usable = length < static_cast<int64_t>(request.prompt.size()) &&
                        common_prefix(held->tokens, request.prompt) >= length && (!hit || hit->length <= length);
    if (usable) hit = PromptCache::Hit{*held->sequence, length};
  }
  if (hit) {
    hit->sequence.set_capacity(context);
    return std::move(hit->sequence);
  }
  return with_memory([&] { return Sequence(model_.spec(), context, options_.caches, pool_); });
}

std::unique_ptr<Slot> Engine::open(const GenerateRequest& request, const GenerateCallbacks& callbacks,
                                   HeldSequence* held) {
  check(request);
  model_.file().check_sizes();
  if (request.context > 0) check_memory(context_for(request));
  Constraint constraint;
  if (request.grammar) constraint = Constraint(request, token_trie());
  std::vector<int64_t> checkpoints;
  if (cache_ && !request.embed)
    checkpoints = checkpoint_positions(static_cast<int64_t>(request.prompt.size()), request.shared_prefix);
  return std::make_unique<Slot>(SlotContext{forward_, tokenizer_.get()}, request, callbacks,
                                begin_sequence(request, held), std::move(constraint), std::move(checkpoints));
}

GenerateResult Engine::close(Slot& slot, HeldSequence* held) {
  std::vector<int32_t> tokens = slot.history();
  std::vector<Sequence> checkpoints = slot.take_checkpoints();
  Sequence sequence = slot.take_sequence();
  if (held != nullptr) {
    with_memory([&] { forward_.settle(sequence); });  // it may be saved
    *held = {tokens, sequence};
  }
  if (cache_ && slot.generates()) {
    tokens.resize(static_cast<size_t>(sequence.length()));
    cache_->keep(std::move(tokens), std::move(sequence), std::move(checkpoints), slot.shared_prefix());
  }
  return slot.result();
}

void Engine::reserve(Slot& slot, const Segment& segment) {
  const auto rows = static_cast<int64_t>(segment.tokens.size());
  const auto prepare = [&] { segment.sequence->prepare(rows, segment.certain < 0 ? rows : segment.certain); };
  try {
    with_memory(prepare);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Memory || !slot.has_checkpoints()) throw;
    slot.drop_checkpoints();
    prepare();
  }
}

GenerateResult Engine::generate(const GenerateRequest& request, const GenerateCallbacks& callbacks,
                                HeldSequence* held) {
  Scheduler alone(*this, {.slots = 1});
  GenerateResult result;
  std::exception_ptr thrown;
  ScheduledCallbacks scheduled{callbacks, {}, {}};
  scheduled.finished = [&](int64_t, GenerateResult made) { result = std::move(made); };
  scheduled.failed = [&](int64_t, const Error&) { thrown = std::current_exception(); };
  alone.add(request, scheduled, held);
  while (alone.step()) {
  }
  if (thrown) std::rethrow_exception(thrown);
  return result;
}

bool Engine::below_memory_floor() const {
  return options_.memory_floor > 0 && free_memory_bytes() < options_.memory_floor;
}

// A context that was asked for has to fit before the run begins.
void Engine::check_memory(int64_t context) const {
  const std::string refusal = memory_refusal(context);
  if (!refusal.empty()) throw Error(ErrorKind::Memory, refusal, options_.model);
}

std::string Engine::memory_refusal(int64_t context) const {
  const PlanRequest wanted{
      context, 1, options_.micro_batch, options_.caches, options_.tier_folder, queue_.shared_accelerator()};
  return does_not_fit(model_.spec(), model_.file(), wanted, options_.memory_floor);
}

}  // namespace strata
