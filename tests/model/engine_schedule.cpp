#include "model/engine_schedule.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <list>

#include "base/error.h"
#include "runtime/scheduler.h"
#include "runtime/session.h"

namespace strata::test {
namespace {

constexpr int64_t kEdges[] = {1, 63, 64, 65, 128};
constexpr int64_t kLongestPrompt = 190;
constexpr size_t kSessions = 3;

struct Text {  // of a session
  int number = 0;
  HeldSequence held;
  SamplerOptions sampler;
  int64_t sampled = 0;
  bool busy = false;
};

struct Request {
  int number = 0;
  int64_t id = 0;
  GenerateRequest request;
  Watch watch;
  std::atomic<bool> interrupted = false;
  Text* text = nullptr;
  bool over = false;
};

class Schedule {
 public:
  Schedule(EngineModel& model, uint64_t seed, const EngineScheduleOptions& options)
      : model_(model), options_(options), seed_(seed), random_(seed * 2 + 1), anchored_(seed % 4 == 1) {
    for (const int64_t edge : {int64_t{0}, kEdges[pick(5)], kEdges[pick(5)], kEdges[pick(5)]}) {
      streams_.push_back(edge == 0 ? Tokens() : Tokens(streams_[0].begin(), streams_[0].begin() + edge));
      const Tokens own = model_.random_tokens(random_.next(), kLongestPrompt - edge);
      streams_.back().insert(streams_.back().end(), own.begin(), own.end());
    }
  }

  EngineScheduleResult run() {
    try {
      start_engine();
      while (result_.failure.empty() && (added() < options_.requests || !scheduler_->idle())) one_action();
      if (result_.failure.empty()) check_end();
    } catch (const std::exception& error) {
      fail(std::string("threw: ") + error.what());
    }
    return std::move(result_);
  }

 private:
  bool chance(int64_t one_of) { return random_.below(one_of) == 0; }
  size_t pick(size_t count) { return static_cast<size_t>(random_.below(static_cast<int64_t>(count))); }
  template <class T>
  T any(std::initializer_list<T> of) {
    return of.begin()[pick(of.size())];
  }
  bool damages(EngineDamage damage) const { return options_.damage == damage && !result_.damaged; }
  int added() const { return static_cast<int>(requests_.size()); }
  bool limited() const { return engine_->options().sequence_bytes > 0; }

  void say(const std::string& what) { result_.log += "  step " + std::to_string(step_) + ": " + what + "\n"; }
  void harmed(const std::string& what) {
    result_.damaged = true;
    say("damage: " + what);
  }
  void fail(const std::string& what) {
    if (!result_.failure.empty()) return;
    result_.failure = "seed " + std::to_string(seed_) + ", step " + std::to_string(step_) + ": " + what;
  }
  void fail(const Request& one, const std::string& what) {
    if (!what.empty()) fail("request " + std::to_string(one.number) + ": " + what);
  }

  void start_engine() {
    EngineOptions options = model_.options();
    options.threads = 1 + static_cast<int>(random_.below(3));
    options.micro_batch = any<int64_t>({1, 7, 64, 512});
    options.caches.anchored = anchored_;
    const uint64_t one = state_bytes(model_.spec(), kLongestPrompt, options.caches).total();
    const bool kept = options_.damage == EngineDamage::WrongPrefix;
    options.prompt_cache_bytes = kept ? uint64_t{1} << 30 : any<uint64_t>({0, one, 3 * one, uint64_t{1} << 30});
    if (options_.damage == EngineDamage::None && chance(3)) options.sequence_bytes = one * (2 + pick(3));
    if (options_.damage == EngineDamage::Company)
      options.forward.observe = [this](const char* name, int, const Tensor& value) {
        if (result_.damaged || std::string_view(name) != "final_hidden" || value.extent(0) < 2) return;
        value.row<float>(0)[1] = 3 - 2 * value.row<float>(0)[1];  // more than rounded activations hide
        harmed("a row of " + std::to_string(value.extent(0)));
      };
    const int slots = 1 + static_cast<int>(random_.below(4));
    engine_ = model_.engine(options);
    engine_->pool().poison(true);
    scheduler_ = std::make_unique<Scheduler>(*engine_, SchedulerOptions{.slots = slots});
    say("engine: " + std::to_string(options.threads) + " threads, micro-batch " + std::to_string(options.micro_batch) +
        ", " + std::to_string(slots) + " slots, " + std::to_string(options.prompt_cache_bytes) +
        " bytes of kept prompts, limit " + std::to_string(options.sequence_bytes) + (anchored_ ? ", anchored" : ""));
  }

  void one_action() {
    if (++step_ > 20000) return fail("it does not end");
    const int64_t dice = random_.below(100);
    if (added() < options_.requests && (dice < 30 || scheduler_->idle())) return add();
    if (result_.damaged || dice >= 40) return steps();
    if (dice < 33) return cancel();
    if (dice < 36) return interrupt();
    if (dice < 39) return save_and_load();
    restart();
  }

  void steps() {
    const int64_t batch = engine_->options().micro_batch;
    const int64_t count = 1 + random_.below(batch == 1 ? 50 : batch == 7 ? 10 : 4);
    for (int64_t i = 0; i < count && result_.failure.empty(); ++i) {
      damage_running();
      result_.counts.together += scheduler_->active() > 1;
      if (!scheduler_->step()) return;
      for (const Request& one : requests_) fail(one, one.watch.difference());
    }
  }

  // A new request.
  void add() {
    Request& one = requests_.emplace_back();
    one.number = added();
    GenerateRequest& request = one.request;
    const int64_t kind = damages(EngineDamage::WrongSession) ? 2 : random_.below(10);
    std::string what;
    bool fresh = true;  // a plain run has to be made
    if (kind < 2 && one.number > 1) {
      const Request& earlier = requests_[pick(requests_.size() - 1)];
      fresh = earlier.request.sampler.skip > 0 || chance(2);
      request = earlier.request;
      if (fresh) choose_output(request);
      if (!fresh) one.watch = Watch(earlier.watch.plain());
      what = "as request " + std::to_string(earlier.number);
    } else {
      what = kind < 6 ? continue_session(one) : kind < 8 ? continue_request(request) : "";
      if (request.prompt.empty()) what += start_prompt(request);
      choose_output(request);
      if (one.text != nullptr) request.sampler = one.text->sampler;
    }
    if (one.text != nullptr) request.sampler.skip = static_cast<uint64_t>(one.text->sampled);
    what += ", " + std::to_string(request.prompt.size()) + " tokens";
    what += choose_drafts(request);
    if (one.text == nullptr && fresh) damage_new(request);
    if (fresh) one.watch = Watch(model_.plain(request, anchored_));
    force_drafts(one);
    submit(one, what);
  }

  void submit(Request& one, const std::string& what) {
    if (damages(EngineDamage::RandomNumber) && one.request.sampler.temperature == 5) {
      ++one.request.sampler.skip;
      harmed("a random number more");
    }
    ScheduledCallbacks callbacks;
    one.watch.attach(callbacks);
    callbacks.interrupted = &one.interrupted;
    callbacks.finished = [this, &one](int64_t, const GenerateResult& result) { finished(one, result); };
    callbacks.failed = [this, &one](int64_t, const Error& error) { failed(one, error); };
    say("add request " + std::to_string(one.number) + ": " + what + ", output " +
        std::to_string(one.watch.plain().tokens.size()) + " at temperature " +
        std::to_string(one.request.sampler.temperature));
    one.id = scheduler_->add(one.request, callbacks, one.text == nullptr ? nullptr : &one.text->held);
  }

  std::string start_prompt(GenerateRequest& request) {
    const size_t stream = pick(streams_.size());
    const int64_t length =
        chance(2) ? kEdges[pick(5)] + random_.below(3) : 1 + random_.below(model_.small() ? kLongestPrompt - 40 : 80);
    request.prompt.assign(streams_[stream].begin(), streams_[stream].begin() + length);
    if (!chance(4)) return "stream " + std::to_string(stream);
    const int64_t period = 2 + random_.below(6);  // a text that lookup has drafts for
    for (size_t i = static_cast<size_t>(period); i < request.prompt.size(); ++i)
      request.prompt[i] = request.prompt[i - static_cast<size_t>(period)];
    return "period of " + std::to_string(period);
  }

  std::string continue_request(GenerateRequest& request) {
    if (requests_.size() < 2) return "";
    const Request& earlier = requests_[pick(requests_.size() - 1)];
    Tokens prompt = earlier.request.prompt;
    prompt.insert(prompt.end(), earlier.watch.plain().tokens.begin(), earlier.watch.plain().tokens.end());
    if (prompt.size() > kLongestPrompt) return "";
    request.prompt = prompt;
    return "goes on from request " + std::to_string(earlier.number);
  }

  std::string continue_session(Request& one) {
    std::vector<Text*> idle;
    for (Text& text : texts_)
      if (!text.busy) idle.push_back(&text);
    if (idle.empty() && texts_.size() == kSessions) return "";
    if (idle.empty() || (texts_.size() < kSessions && chance(2))) {
      texts_.push_back({static_cast<int>(texts_.size()) + 1, {}, random_sampler(), 0, false});
      idle = {&texts_.back()};
    }
    Text& text = *idle[pick(idle.size())];
    if (text.held.tokens.size() > kLongestPrompt) text.held = {}, text.sampled = 0;
    if (damages(EngineDamage::WrongSession) && text.held.sequence && text.held.sequence->length() > 8) {
      int32_t& token = text.held.tokens[static_cast<size_t>(text.held.sequence->length() / 2)];
      token = (token + 1) % static_cast<int32_t>(model_.spec().vocabulary);
      harmed("a token of session " + std::to_string(text.number));
    }
    one.text = &text;
    text.busy = true;
    one.request.prompt = text.held.tokens;
    if (one.request.prompt.empty()) return "session " + std::to_string(text.number) + ", ";
    if (chance(2)) {
      const Tokens more = model_.random_tokens(random_.next(), chance(4) ? 66 : 3);
      one.request.prompt.insert(one.request.prompt.end(), more.begin(), more.end());
    }
    ++result_.counts.resumed;
    return "session " + std::to_string(text.number) + " goes on";
  }

  SamplerOptions random_sampler() {
    SamplerOptions sampler;
    if (chance(3)) {
      sampler.repetition_penalty = 1.3, sampler.presence_penalty = 0.4, sampler.frequency_penalty = 0.2;
      sampler.penalty_window = any<int64_t>({-1, 8, 64});
    }
    if (chance(2)) return sampler;
    sampler.temperature = any({0.5, 1.0, 1.5});
    sampler.top_k = any<int64_t>({0, 5, 40});
    sampler.top_p = any({1.0, 0.9});
    sampler.min_p = any({0.0, 0.05});
    sampler.seed = random_.next();
    return sampler;
  }

  void choose_output(GenerateRequest& request) {
    const auto prompt = static_cast<int64_t>(request.prompt.size());
    request.sampler = random_sampler();
    request.max_tokens = 1 + random_.below(options_.longest);
    request.context = prompt + request.max_tokens + random_.below(20);
    if (chance(5)) {
      request.max_tokens = -1;
      request.context = prompt + random_.below(options_.longest);
    }
    request.ignore_end = !chance(4);
    request.repeat_limit = chance(5) ? 2 + random_.below(2) : 0;
    request.stop.clear();
    if (chance(5)) request.stop = {any<const char*>({"e", "th", "\n", "1"})};
    request.grammar.reset();
    if (chance(5))  // two letters repeat themselves, so that lookup has drafts
      request.grammar = text::Grammar::from_gbnf(
          any<const char*>({"root ::= [ab]+", "root ::= [ab]+", "root ::= [a-z ]+", "root ::= [a-z]{3} [0-9]{2}"}));
    request.shared_prefix = chance(3) ? kEdges[pick(5)] : 0;
  }

  std::string choose_drafts(GenerateRequest& request) {
    request.drafter = {};
    request.draft_max = request.draft_min = 1 + static_cast<int>(random_.below(kMaxDrafts));
    request.draft = any({DraftKind::None, DraftKind::Lookup, DraftKind::Mtp, DraftKind::Auto});
    const std::string many = std::to_string(request.draft_max);
    if (request.draft == DraftKind::Mtp && !model_.has_mtp()) request.draft = DraftKind::None;
    if (request.draft == DraftKind::None) return "";
    if (request.draft == DraftKind::Auto) return ", drafts of " + many + ", forced";
    return ", drafts of " + many + (request.draft == DraftKind::Mtp ? ", MTP" : ", lookup");
  }

  void force_drafts(Request& one) {
    if (one.request.draft != DraftKind::Auto) return;
    const auto accepted = [this, random = Random(random_.next())](int limit) mutable {
      const int64_t right = random.below(3) == 0 ? limit : random.below(limit + 1);
      ++result_.counts.held[static_cast<size_t>(right)];
      return static_cast<int>(right);
    };
    one.request.drafter =
        forced_drafts(one.request.prompt.size(), one.watch.plain(), model_.spec().vocabulary, accepted);
  }

  void end(Request& one) {
    one.over = true;
    if (one.text != nullptr) one.text->busy = false;
  }

  void finished(Request& one, const GenerateResult& result) {
    say("request " + std::to_string(one.number) + " ends by " + to_string(result.reason) + " after " +
        std::to_string(result.tokens.size()) + " tokens, " + std::to_string(result.cached_tokens) + " were kept");
    if (one.over) return fail(one, "it ends although it was over");
    const bool whole = result.reason != FinishReason::Interrupted;
    if (!whole && !one.interrupted) fail(one, "nobody interrupted it");
    fail(one, one.watch.compare(result.tokens, result.reason, whole));
    if (one.text != nullptr) {
      if (whole) fail(one, one.watch.compare(one.text->held));
      one.text->sampled += static_cast<int64_t>(result.tokens.size());
    }
    end(one);
    auto& counts = result_.counts;
    ++(whole ? counts.finished : counts.interrupted);
    counts.logits += one.watch.seen();
    counts.cached += result.cached_tokens > 0;
    counts.sampled += one.request.sampler.temperature > 0;
    counts.full += whole && one.request.max_tokens < 0 && result.reason == FinishReason::Length;
    if (one.request.draft == DraftKind::Lookup) counts.lookup += result.drafts[0].tried;
    if (one.request.draft == DraftKind::Mtp) counts.mtp += result.drafts[0].tried;
  }

  void failed(Request& one, const Error& error) {
    say("request " + std::to_string(one.number) + " fails: " + error.what());
    if (one.over) return fail(one, "it fails although it was over");
    end(one);
    if (error.kind() != ErrorKind::Memory || !limited()) fail(one, error.what());
    ++result_.counts.out_of_memory;
  }

  Request* running() {
    std::vector<Request*> all;
    for (Request& one : requests_)
      if (!one.over) all.push_back(&one);
    return all.empty() ? nullptr : all[pick(all.size())];
  }

  void cancel(Request& one) {
    say("cancel request " + std::to_string(one.number));
    scheduler_->cancel(one.id);
    end(one);
    ++result_.counts.cancelled;
  }
  void cancel() {
    if (Request* one = running()) cancel(*one);
  }

  void interrupt() {
    Request* one = running();
    if (one == nullptr) return;
    say("interrupt request " + std::to_string(one->number));
    one->interrupted = true;
  }

  std::string session_path(const Text& text) const {
    return model_.folder().file(std::to_string(text.number) + ".session");
  }
  void load(Text& text) {
    text.held = {};
    try {
      Session session = load_session(session_path(text), *engine_);
      text.held = std::move(session.held);
      if (session.sampled != text.sampled) fail("a session has forgotten how much was sampled");
      ++result_.counts.loaded;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::Memory || !limited()) throw;
      text.sampled = 0;
    }
  }
  bool save(const Text& text) {
    if (!text.held.sequence) return false;
    save_session(session_path(text), *engine_, {text.held, text.sampled, ""});
    return true;
  }

  void save_and_load() {
    for (Text& text : texts_) {
      if (text.busy || !save(text)) continue;
      say("save and load session " + std::to_string(text.number));
      const uint64_t before = text.held.sequence->hash();
      load(text);
      if (text.held.sequence && text.held.sequence->hash() != before) fail("a loaded session has another state");
      return;
    }
  }

  // Another engine, with other settings, goes on with the sessions.
  void restart() {
    if (result_.counts.restarts == 2) return;
    ++result_.counts.restarts;
    for (Request& one : requests_)
      if (!one.over) cancel(one);
    std::vector<Text*> saved;
    for (Text& text : texts_) {
      if (save(text))
        saved.push_back(&text);
      else
        text.sampled = 0;
      text.held = {};
    }
    check_empty();
    scheduler_.reset();
    start_engine();
    for (Text* text : saved) load(*text);
  }

  void check_empty() {
    if (!scheduler_->idle()) fail("requests are left");
    while (engine_->prompt_cache() != nullptr && engine_->prompt_cache()->evict()) {
    }
    const uint64_t used = engine_->pool().used();
    if (used != 0) fail(std::to_string(used) + " bytes are still in use");
  }

  void check_end() {
    for (const Request& one : requests_)
      if (!one.over) fail(one, "it never ends");
    for (Text& text : texts_) text.held = {};
    check_empty();
  }

  void damage_new(GenerateRequest& request) {
    if (damages(EngineDamage::RandomNumber) && request.draft != DraftKind::None) {
      request.sampler = {.temperature = 5, .top_k = 0, .top_p = 1, .min_p = 0, .seed = random_.next()};
      request.grammar.reset(), request.stop.clear();
      request.repeat_limit = 0, request.ignore_end = true;
      request.max_tokens = 8, request.context = kLongestPrompt * 2;
    }
    if (damages(EngineDamage::WrongPrefix) && request.prompt.size() > 20 && scheduler_->idle()) {
      const Tokens kept(request.prompt.begin(), request.prompt.end() - 1);
      Tokens other = kept;
      other[3] = (other[3] + 1) % static_cast<int32_t>(model_.spec().vocabulary);
      Sequence sequence(model_.spec(), kLongestPrompt * 2, engine_->options().caches, engine_->pool());
      engine_->forward().run(other, sequence, {});
      engine_->prompt_cache()->keep(kept, std::move(sequence), {});
      harmed("a kept sequence of another prompt");
    }
  }

  // To a request that chooses at least one more token.
  void damage_running() {
    if (!damages(EngineDamage::Page) && !damages(EngineDamage::Rejected)) return;
    for (Request& one : requests_) {
      const Slot* slot = one.over ? nullptr : scheduler_->slot(one.id);
      if (slot == nullptr || !slot->chooses() || slot->history().size() < 20) continue;
      if (slot->sequence().capacity() - slot->sequence().length() < 3 || one.interrupted) continue;
      auto& sequence = const_cast<Sequence&>(slot->sequence());
      if (options_.damage == EngineDamage::Rejected) {
        const int32_t token = (slot->history().back() + 1) % static_cast<int32_t>(model_.spec().vocabulary);
        engine_->forward().run({&token, 1}, sequence, {});
        return harmed("a token in the sequence of request " + std::to_string(one.number));
      }
      for (LayerCaches& caches : sequence.layers)
        for (int64_t row = 0; row < caches.k.length(); ++row) {  // every row: block selection may pass one over
          auto* bytes = static_cast<unsigned char*>(const_cast<void*>(static_cast<const void*>(caches.k.row(row))));
          bytes[1] ^= 3;  // of a 16-bit float: the upper bits of the mantissa
          bytes[3] ^= 3;
        }
      return harmed("keys of request " + std::to_string(one.number));
    }
  }

  EngineModel& model_;
  EngineScheduleOptions options_;
  uint64_t seed_;
  Random random_;
  bool anchored_;
  EngineScheduleResult result_;
  std::vector<Tokens> streams_;
  std::list<Text> texts_;  // sessions and requests stay where they are: others point to them
  std::deque<Request> requests_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Scheduler> scheduler_;
  int step_ = 0;
};

}  // namespace

const char* to_string(EngineDamage damage) {
  switch (damage) {
    case EngineDamage::None: return "none";
    case EngineDamage::Company: return "a row depends on its company";
    case EngineDamage::Page: return "keys changed";
    case EngineDamage::Rejected: return "token that was not chosen";
    case EngineDamage::WrongPrefix: return "kept sequence of another prompt";
    case EngineDamage::WrongSession: return "session of another text";
    case EngineDamage::RandomNumber: return "random number spent on a draft";
  }
  return "?";
}

void EngineScheduleResult::Counts::add(const Counts& other) {
  logits += other.logits, finished += other.finished, cancelled += other.cancelled, interrupted += other.interrupted;
  out_of_memory += other.out_of_memory, cached += other.cached, together += other.together;
  resumed += other.resumed, loaded += other.loaded, restarts += other.restarts, sampled += other.sampled;
  full += other.full, lookup += other.lookup, mtp += other.mtp;
  for (size_t i = 0; i < held.size(); ++i) held[i] += other.held[i];
}

EngineScheduleResult run_engine_schedule(EngineModel& model, uint64_t seed, const EngineScheduleOptions& options) {
  return Schedule(model, seed, options).run();
}

}  // namespace strata::test
