// Requests in company: the tokens that each gets alone, whoever comes, goes or fails beside it.
#include "runtime/scheduler.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <new>
#include <stdexcept>

#include "base/log.h"
#include "base/random.h"

namespace strata {
namespace {

const char* const kModel = STRATA_SOURCE_DIR "/models/strata-mini-q8_0.gguf";

EngineOptions options(uint64_t limit = 0) {
  EngineOptions options;
  options.model = kModel;
  options.threads = 2;
  options.micro_batch = 64;
  options.sequence_bytes = limit;
  return options;
}

GenerateRequest request(int64_t prompt, int64_t tokens, int32_t seed, DraftKind draft = DraftKind::None) {
  GenerateRequest request;
  for (int64_t i = 0; i < prompt; ++i)
    request.prompt.push_back(static_cast<int32_t>((i % 23 * 37 + seed * 101) % 900 + 20));
  request.max_tokens = tokens;
  request.ignore_end = true;
  request.draft = draft;
  return request;
}

struct Outcome {
  std::map<int64_t, GenerateResult> results;
  std::map<int64_t, ErrorKind> errors;
  std::vector<int64_t> order;

  ScheduledCallbacks callbacks() {
    ScheduledCallbacks callbacks;
    callbacks.finished = [this](int64_t id, GenerateResult result) {
      order.push_back(id);
      results[id] = std::move(result);
    };
    callbacks.failed = [this](int64_t id, const Error& error) { errors.emplace(id, error.kind()); };
    return callbacks;
  }
};

class SchedulerTest : public ::testing::Test {
 protected:
  static Engine& engine() {
    static Engine engine(options(), log_);
    return engine;
  }
  static inline Log log_{LogLevel::Error};
};

TEST_F(SchedulerTest, TokensAreThoseOfARequestAlone) {
  Random random(5);
  for (DraftKind kind : {DraftKind::None, DraftKind::Lookup, DraftKind::Mtp}) {
    std::vector<GenerateRequest> requests;
    std::vector<std::vector<int32_t>> alone;
    const int64_t lengths[] = {1, 63, 150, 64, 20};
    for (int i = 0; i < 5; ++i) {
      requests.push_back(request(lengths[i], 14 + 3 * i, i, kind));
      if (i % 2 == 1) {
        requests.back().sampler.temperature = 0.9;
        requests.back().sampler.seed = static_cast<uint64_t>(i);
      }
      alone.push_back(engine().generate(requests.back()).tokens);
    }
    for (int slots : {5, 2}) {
      const uint64_t before = engine().pool().used();
      Scheduler scheduler(engine(), {.slots = slots, .micro_batch = 17});
      Outcome outcome;
      std::map<int64_t, size_t> index;
      std::vector<int64_t> unwanted;
      for (size_t next = 0; next < requests.size() || !scheduler.idle();) {
        if (next < requests.size() && random.below(4) == 0) {
          index[scheduler.add(requests[next], outcome.callbacks())] = next;
          ++next;
          if (next % 2 == 0) unwanted.push_back(scheduler.add(request(70, 50, 77, kind), outcome.callbacks()));
        }
        if (!unwanted.empty() && random.below(6) == 0) {
          scheduler.cancel(unwanted.back());
          unwanted.pop_back();
        }
        scheduler.step();
      }
      for (const auto& [id, at] : index) EXPECT_EQ(outcome.results[id].tokens, alone[at]) << at << " slots " << slots;
      EXPECT_TRUE(outcome.errors.empty());
      EXPECT_EQ(engine().pool().used(), before);
    }
  }
}

TEST_F(SchedulerTest, ALongPromptDelaysOthersByOnePiece) {
  Scheduler scheduler(engine(), {.slots = 3, .micro_batch = 16});
  Outcome outcome;
  const int64_t quick = scheduler.add(request(5, 25, 1), outcome.callbacks());
  scheduler.step();
  const int64_t slow = scheduler.add(request(600, 4, 2), outcome.callbacks());
  const int64_t other = scheduler.add(request(100, 4, 3), outcome.callbacks());
  int64_t tokens = static_cast<int64_t>(scheduler.slot(quick)->history().size());
  while (scheduler.step() && scheduler.slot(quick) != nullptr) {
    const auto now = static_cast<int64_t>(scheduler.slot(quick)->history().size());
    EXPECT_EQ(now, tokens + 1);  // one token in every step
    tokens = now;
  }
  EXPECT_TRUE(scheduler.slot(slow)->in_prompt());  // 24 steps: not half of it
  EXPECT_GT(scheduler.slot(slow)->sequence().length(), 200);
  EXPECT_EQ(outcome.order, (std::vector<int64_t>{other, quick}));  // the short prompt had its turns
  while (scheduler.step()) {
  }
  EXPECT_EQ(outcome.results.size(), 3u);
}

TEST_F(SchedulerTest, RequestsWaitInOrder) {
  Scheduler scheduler(engine(), {.slots = 1});
  Outcome outcome;
  std::vector<int64_t> ids;
  for (int i = 0; i < 3; ++i) ids.push_back(scheduler.add(request(4, 3 - i, i), outcome.callbacks()));
  EXPECT_EQ(scheduler.waiting(), 3u);
  scheduler.step();
  EXPECT_EQ(scheduler.active(), 1u);
  scheduler.cancel(ids[1]);  // one that waits
  while (scheduler.step()) EXPECT_LE(scheduler.active(), 1u);
  EXPECT_EQ(outcome.order, (std::vector<int64_t>{ids[0], ids[2]}));
  EXPECT_FALSE(scheduler.step());
}

TEST_F(SchedulerTest, BadRequestsAreRefusedAtOnce) {
  Scheduler scheduler(engine());
  GenerateRequest bad = request(4, 3, 1);
  bad.prompt[2] = 1 << 30;
  EXPECT_THROW(scheduler.add(bad, {}), Error);
  bad.prompt.clear();
  EXPECT_THROW(scheduler.add(bad, {}), Error);
  EXPECT_TRUE(scheduler.idle());
  EXPECT_THROW(Scheduler(engine(), {.slots = 0}), Error);
}

TEST_F(SchedulerTest, ARequestWhoseCallbackThrowsFailsAlone) {
  const uint64_t before = engine().pool().used();
  const std::vector<int32_t> alone = engine().generate(request(30, 10, 1)).tokens;
  Scheduler scheduler(engine());
  Outcome outcome;
  ScheduledCallbacks throwing = outcome.callbacks();
  throwing.text = [](std::string_view) -> bool { throw std::runtime_error("the reader is gone"); };
  const int64_t good = scheduler.add(request(30, 10, 1), outcome.callbacks());
  const int64_t bad = scheduler.add(request(30, 10, 2), throwing);
  while (scheduler.step()) {
  }
  EXPECT_EQ(outcome.results[good].tokens, alone);
  EXPECT_EQ(outcome.errors.count(bad), 1u);
  EXPECT_EQ(scheduler.counts().failed, 1);
  EXPECT_EQ(engine().pool().used(), before);
}

TEST_F(SchedulerTest, CallbacksMayCancelAndAdd) {
  const uint64_t before = engine().pool().used();
  Scheduler scheduler(engine());
  Outcome outcome;
  const int64_t victim = scheduler.add(request(10, 50, 1), outcome.callbacks());
  ScheduledCallbacks callbacks = outcome.callbacks();
  callbacks.finished = [&](int64_t, GenerateResult) {
    scheduler.cancel(victim);
    scheduler.add(request(3, 2, 3), outcome.callbacks());
  };
  scheduler.add(request(10, 5, 2), callbacks);
  while (scheduler.step()) {
  }
  EXPECT_EQ(outcome.results.count(victim), 0u);
  EXPECT_EQ(outcome.results.size(), 1u);
  EXPECT_EQ(engine().pool().used(), before);
}

// Also when it would have ended in the same step.
TEST_F(SchedulerTest, NothingIsHeardOfACancelledRequest) {
  const uint64_t before = engine().pool().used();
  for (const bool at_the_end : {false, true}) {
    Scheduler scheduler(engine());
    Outcome outcome;
    HeldSequence held;
    int64_t victim = 0;
    bool cancelled = false;
    const auto cancel = [&] {
      scheduler.cancel(victim);
      cancelled = true;
    };
    ScheduledCallbacks first = outcome.callbacks(), second = outcome.callbacks();
    first.logits = [&](std::span<const float>) {
      if (!at_the_end) cancel();
    };
    first.finished = [&](int64_t, const GenerateResult&) { cancel(); };
    second.logits = [&](std::span<const float>) { EXPECT_FALSE(cancelled); };
    scheduler.add(request(1, 2, 1), first);
    victim = scheduler.add(request(1, 1, 2), second, &held);
    while (scheduler.step()) {
    }
    EXPECT_TRUE(cancelled);
    EXPECT_TRUE(outcome.results.empty() && outcome.errors.empty());
    EXPECT_FALSE(held.sequence);
  }
  EXPECT_EQ(engine().pool().used(), before);
}

TEST_F(SchedulerTest, BrokenLogitsFailOneRequestAndAreCounted) {
  int64_t poisoned = -1;  // row of the final hidden states
  EngineOptions broken = options();
  broken.forward.observe = [&](const char* name, int, const Tensor& value) {
    if (std::string_view(name) == "final_hidden" && poisoned >= 0 && value.extent(0) > poisoned)
      value.row<float>(poisoned)[3] = std::numeric_limits<float>::quiet_NaN();
  };
  Engine engine(broken, log_);
  const std::vector<int32_t> first = engine.generate(request(20, 12, 1)).tokens;
  const std::vector<int32_t> third = engine.generate(request(20, 12, 3)).tokens;
  Scheduler scheduler(engine);
  Outcome outcome;
  std::vector<int64_t> ids;
  for (int i = 1; i <= 3; ++i) ids.push_back(scheduler.add(request(20, 12, i), outcome.callbacks()));
  for (int i = 0; i < 5; ++i) scheduler.step();
  poisoned = 1;
  scheduler.step();
  poisoned = -1;
  while (scheduler.step()) {
  }
  EXPECT_EQ(outcome.errors, (std::map<int64_t, ErrorKind>{{ids[1], ErrorKind::Model}}));
  EXPECT_EQ(scheduler.counts().broken_logits, 1);
  EXPECT_EQ(outcome.results[ids[0]].tokens, first);
  EXPECT_EQ(outcome.results[ids[2]].tokens, third);
  EXPECT_EQ(engine.pool().used(), 0u);
}

// One request alone: the same error, with its own type, and nothing is left behind.
TEST_F(SchedulerTest, GenerateThrowsWhatWasThrown) {
  EngineOptions broken = options();
  bool poison = true;
  broken.forward.observe = [&](const char* name, int, const Tensor& value) {
    if (std::string_view(name) == "final_hidden" && poison)
      value.row<float>(0)[3] = std::numeric_limits<float>::infinity();
  };
  Engine engine(broken, log_);
  HeldSequence held;
  for (DraftKind kind : {DraftKind::None, DraftKind::Lookup, DraftKind::Mtp}) try {
      engine.generate(request(20, 12, 1, kind), {}, &held);
      ADD_FAILURE() << "logits that are not finite gave a text";
    } catch (const LogitsError& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Model);
      EXPECT_NE(std::string(error.what()).find("is not finite"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("position 20"), std::string::npos) << error.what();
    }
  EXPECT_FALSE(held.sequence);
  EXPECT_EQ(engine.pool().used(), 0u);
  poison = false;
  GenerateCallbacks callbacks;
  callbacks.text = [](std::string_view) -> bool { throw std::out_of_range("the reader is gone"); };
  EXPECT_THROW(engine.generate(request(20, 12, 1), callbacks), std::out_of_range);
  callbacks = {};
  callbacks.prompt_progress = [](int64_t, int64_t) { throw 5; };
  EXPECT_THROW(engine.generate(request(20, 12, 1), callbacks), int);
  EXPECT_EQ(engine.pool().used(), 0u);
  EXPECT_EQ(engine.generate(request(20, 12, 1)).tokens.size(), 12u);
}

TEST_F(SchedulerTest, FailuresOfAnyTypeAreReported) {
  Scheduler scheduler(engine());
  std::vector<std::string> messages;
  ScheduledCallbacks callbacks;
  callbacks.failed = [&](int64_t, const Error& error) { messages.push_back(error.what()); };
  for (int kind = 0; kind < 3; ++kind) {
    callbacks.prompt_progress = [kind](int64_t, int64_t) {
      if (kind == 0) throw std::runtime_error("the reader is gone");
      if (kind == 1) throw std::bad_alloc();
      throw 5;
    };
    scheduler.add(request(5, 3, kind), callbacks);
  }
  while (scheduler.step()) {
  }
  ASSERT_EQ(messages.size(), 3u);
  EXPECT_NE(messages[0].find("the reader is gone"), std::string::npos) << messages[0];
  EXPECT_NE(messages[1].find("no memory left"), std::string::npos) << messages[1];
  EXPECT_NE(messages[2].find("a callback of the request"), std::string::npos) << messages[2];
  EXPECT_EQ(scheduler.counts().broken_logits, 0);
}

TEST_F(SchedulerTest, HeldSequencesGoOnInCompany) {
  std::vector<int32_t> whole[3];
  HeldSequence held[3];
  std::vector<int32_t> tokens[3];
  for (int32_t i = 0; i < 3; ++i) whole[i] = engine().generate(request(30 + i, 16, i)).tokens;
  for (const int64_t count : {6, 10}) {
    Scheduler scheduler(engine(), {.slots = 3});
    for (int32_t i = 0; i < 3; ++i) {
      GenerateRequest one = request(30 + i, count, i);
      if (count == 10) one.prompt = held[i].tokens;
      ScheduledCallbacks callbacks;
      callbacks.finished = [&, i](int64_t, const GenerateResult& result) {
        EXPECT_EQ(result.cached_tokens, count == 10 ? 30 + i + 5 : 0);
        tokens[i].insert(tokens[i].end(), result.tokens.begin(), result.tokens.end());
      };
      scheduler.add(one, callbacks, &held[i]);
    }
    while (scheduler.step()) {
    }
  }
  for (int32_t i = 0; i < 3; ++i) EXPECT_EQ(tokens[i], whole[i]) << i;
}

// A floor that no machine has room above: requests end before anything is run.
TEST_F(SchedulerTest, BelowTheMemoryFloorRequestsEnd) {
  EngineOptions low = options();
  low.memory_floor = uint64_t{1} << 60;
  Engine engine(low, log_);
  const GenerateResult alone = engine.generate(request(20, 5, 1));
  EXPECT_EQ(alone.reason, FinishReason::MemoryFloor);
  EXPECT_TRUE(alone.tokens.empty());
  Scheduler scheduler(engine);
  Outcome outcome;
  for (int i = 0; i < 3; ++i) scheduler.add(request(20, 5, i), outcome.callbacks());
  while (scheduler.step()) {
  }
  EXPECT_EQ(outcome.order, (std::vector<int64_t>{3, 2, 1}));  // the newest first
  for (const auto& [id, result] : outcome.results) EXPECT_EQ(result.reason, FinishReason::MemoryFloor) << id;
}

// Stages of the profile: a pass that reads a prompt is one of the prompt, whatever runs beside it.
TEST_F(SchedulerTest, StagesAreMeasured) {
  Profiler profiler;
  EngineOptions measured = options();
  measured.profiler = &profiler;
  Engine engine(measured, log_);
  Scheduler scheduler(engine, {.slots = 2, .micro_batch = 16});
  GenerateRequest drafted = request(16, 9, 2);
  drafted.drafter = [](std::span<const int32_t>, int) { return std::vector<int32_t>{1, 2}; };
  drafted.draft_max = 2;
  scheduler.add(request(48, 9, 1), {});
  scheduler.add(drafted, {});
  while (scheduler.step()) {
  }
  const ProfileReport report = profiler.report();
  const StageReport *prompt = report.find(Stage::Prompt), *decode = report.find(Stage::Decode),
                    *verify = report.find(Stage::Verify);
  ASSERT_TRUE(prompt != nullptr && decode != nullptr && verify != nullptr);
  EXPECT_EQ(prompt->spans.calls, 4);
  EXPECT_EQ(prompt->tokens + decode->tokens, 48 + 16 + 2 * 8);  // one for each step of each request
  EXPECT_EQ(verify->tokens, 6 * 3 + 2);                         // at the end there is room for one draft, then for none
  EXPECT_EQ(report.still_open, 0);
  EXPECT_EQ(report.out_of_order, 0);
}

TEST_F(SchedulerTest, TheNewestGivesWayWhenMemoryIsFull) {
  const std::vector<int32_t> first = engine().generate(request(100, 150, 1)).tokens;
  const uint64_t before = engine().pool().used();
  uint64_t most = 0;
  {
    Scheduler alone(engine(), {});
    alone.add(request(100, 150, 1), {});
    while (alone.step()) most = std::max(most, engine().pool().used() - before);
  }
  Engine small(options(most * 2 - 1), log_);  // both start, one ends
  Scheduler scheduler(small, {});
  Outcome outcome;
  const int64_t old = scheduler.add(request(100, 150, 1), outcome.callbacks());
  const int64_t recent = scheduler.add(request(100, 150, 2), outcome.callbacks());
  while (scheduler.step()) {
  }
  EXPECT_EQ(outcome.results[old].tokens, first);
  EXPECT_EQ(outcome.errors, (std::map<int64_t, ErrorKind>{{recent, ErrorKind::Memory}}));
  EXPECT_EQ(small.pool().used(), 0u);
}

}  // namespace
}  // namespace strata
