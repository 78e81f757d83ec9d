#include "runtime/engine.h"

#include <algorithm>

#include "base/error.h"
#include "runtime/plan.h"
#include "runtime/slot.h"
#include "runtime/vocabulary.h"

namespace strata {
namespace {

Model load_model(const EngineOptions& options) {
  const ProfileSpan span(options.profiler, "model", "host");
  return Model::load(options.model, options.rope);
}

PagePool make_pool(const EngineOptions& options) {
  PagePool pool = options.sequence_bytes > 0 ? PagePool(options.sequence_bytes) : PagePool();
  if (options.caches.resident > 0) check_tier_folder(options.tier_folder);
  pool.set_folder(options.tier_folder);
  return pool;
}

int thread_count(int wanted) { return wanted > 0 ? wanted : list_devices().front().cores; }

}  // namespace

Engine::Engine(const EngineOptions& options, Log& log)
    : options_(options),
      loading_(std::in_place, options.profiler, Stage::Load),
      model_(load_model(options)),
      queue_(thread_count(options.threads), log),
      forward_(model_, queue_, options.forward),
      pool_(make_pool(options)) {
  if (options.prompt_cache_bytes > 0) cache_.emplace(pool_, options.prompt_cache_bytes);
  if (options.micro_batch < 1 || options.micro_batch > 65536)
    throw Error(ErrorKind::Usage, "a micro-batch has 1 to 65536 tokens, not " + std::to_string(options.micro_batch));
  check_cache_types(model_.spec(), options.caches);
  queue_.cpu = options.cpu;
  queue_.strict_arms = options.strict_arms;
  queue_.profiler = options.profiler;
  for (const auto& [op, arm] : options.arms) queue_.request_arm(op, arm);
  load_tokenizer();
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

// The longest sequence at hand that holds a beginning of the prompt, or a new one.
Sequence Engine::begin_sequence(const GenerateRequest& request, HeldSequence* held) {
  const int64_t context = context_for(request);
  std::optional<PromptCache::Hit> hit;
  if (cache_) hit = cache_->find(request.prompt);
  if (held != nullptr && held->sequence) {
    const int64_t length = held->sequence->length();
    const bool usable = length < static_cast<int64_t>(request.prompt.size()) &&
                        common_prefix(held->tokens, request.prompt) >= length && (!hit || hit->length <= length);
    if (usable) hit = PromptCache::Hit{*held->sequence, length};
  }
  if (hit) {
    hit->sequence.set_capacity(context);
    return std::move(hit->sequence);
  }
  for (;;) try {
      return Sequence(model_.spec(), context, options_.caches, pool_);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::Memory || !cache_ || !cache_->evict()) throw;
    }
}

std::unique_ptr<Slot> Engine::open(const GenerateRequest& request, const GenerateCallbacks& callbacks,
                                   HeldSequence* held) {
  check(request);
  model_.file().check_sizes();
  if (request.context > 0) check_memory(context_for(request));
  Constraint constraint;
  if (request.grammar) constraint = Constraint(*request.grammar, token_trie(), request.ignore_end);
  std::vector<int64_t> checkpoints;
  if (cache_) checkpoints = checkpoint_positions(static_cast<int64_t>(request.prompt.size()), request.shared_prefix);
  return std::make_unique<Slot>(SlotContext{forward_, tokenizer_.get()}, request, callbacks,
                                begin_sequence(request, held), std::move(constraint), std::move(checkpoints));
}

GenerateResult Engine::close(Slot& slot, HeldSequence* held) {
  std::vector<int32_t> tokens = slot.history();
  std::vector<Sequence> checkpoints = slot.take_checkpoints();
  Sequence sequence = slot.take_sequence();
  if (held != nullptr) {
    settle(sequence);  // it may be saved
    *held = {tokens, sequence};
  }
  if (cache_) {
    tokens.resize(static_cast<size_t>(sequence.length()));
    cache_->keep(std::move(tokens), std::move(sequence), std::move(checkpoints), slot.shared_prefix());
  }
  return slot.result();
}

void Engine::settle(Sequence& sequence) {
  for (;;) try {
      return forward_.settle(sequence);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::Memory || !cache_ || !cache_->evict()) throw;
    }
}

void Engine::reserve(Slot& slot, const Segment& segment) {
  const auto rows = static_cast<int64_t>(segment.tokens.size());
  for (;;) try {
      return segment.sequence->prepare(rows, segment.certain < 0 ? rows : segment.certain);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::Memory) throw;
      if (cache_ && cache_->evict()) continue;
      if (!slot.has_checkpoints()) throw;
      slot.drop_checkpoints();
    }
}

GenerateResult Engine::generate(const GenerateRequest& request, const GenerateCallbacks& callbacks,
                                HeldSequence* held) {
  const std::unique_ptr<Slot> slot = open(request, callbacks, held);
  while (!slot->done()) {
    if (slot->interrupted())
      slot->stop(FinishReason::Interrupted);
    else if (below_memory_floor())
      slot->stop(FinishReason::MemoryFloor);
    else
      step(*slot);
  }
  return close(*slot, held);
}

bool Engine::below_memory_floor() const {
  return options_.memory_floor > 0 && free_memory_bytes() < options_.memory_floor;
}

// A context that was asked for has to fit before the run begins.
void Engine::check_memory(int64_t context) const {
  const PlanRequest wanted{context, 1, options_.micro_batch, options_.caches, options_.tier_folder};
  const std::string refusal = does_not_fit(model_.spec(), model_.file(), wanted, options_.memory_floor);
  if (!refusal.empty()) throw Error(ErrorKind::Memory, refusal, options_.model);
}

void Engine::step(Slot& slot) {
  const bool prompt = slot.in_prompt();
  {
    ProfileSpan span(queue_.profiler, prompt ? Stage::Prompt : Stage::Decode);
    const Segment segment = slot.next(options_.micro_batch);
    reserve(slot, segment);
    {
      std::optional<ProfileSpan> verify;
      if (slot.drafted() > 0) verify.emplace(queue_.profiler, Stage::Verify, slot.drafted() + 1);
      forward_.run({&segment, 1});
    }
    span.add_tokens(prompt ? static_cast<int64_t>(segment.tokens.size()) : 1);
    slot.consume_prompt();
    if (!prompt) slot.choose();
  }
  if (!prompt || slot.in_prompt() || slot.done()) return;
  const ProfileSpan span(queue_.profiler, Stage::Decode);  // the first token comes from the prompt's last logits
  slot.choose();
}

}  // namespace strata
