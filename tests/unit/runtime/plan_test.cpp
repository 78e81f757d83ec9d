// The plan against what a run takes.
#include "runtime/plan.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/log.h"
#include "runtime/engine.h"

namespace strata {
namespace {

const char* const kModel = STRATA_SOURCE_DIR "/models/strata-mini-q8_0.gguf";

EngineOptions options() {
  EngineOptions options;
  options.model = kModel;
  options.threads = 1;
  return options;
}

TEST(Plan, ScratchIsNearWhatAPassTakes) {
  Log log(LogLevel::Error);
  Engine engine(options(), log);
  const ModelSpec& spec = engine.model().spec();
  for (int64_t rows : {1, 64, 300}) {
    Engine fresh(options(), log);
    Sequence sequence(spec, 1024);
    std::vector<float> logits(static_cast<size_t>(spec.vocabulary));
    fresh.forward().run(std::vector<int32_t>(static_cast<size_t>(rows), 7), sequence,
                        make_f32(logits.data(), {1, spec.vocabulary}));
    const auto taken = static_cast<double>(fresh.forward().scratch_bytes());
    const auto planned = static_cast<double>(scratch_bytes(spec, rows, 1024));
    // The arena grows in steps of its own, and the plan takes the widest layer for all: a factor of two either way, and
    // a megabyte of steps.
    EXPECT_LT(planned, 2 * taken + 1048576) << rows;
    EXPECT_GT(planned, taken / 2 - 1048576) << rows;
  }
}

TEST(Plan, StatesAreWhatASequenceTakes) {
  Log log(LogLevel::Error);
  Engine engine(options(), log);
  Sequence sequence(engine.model().spec(), 200);
  engine.forward().run(std::vector<int32_t>(130, 7), sequence, {});
  const StateBytes planned = state_bytes(engine.model().spec(), 130), taken = sequence.bytes();
  EXPECT_GT(planned.delta, taken.delta);  // nothing is pending: the room for it is planned all the same
  EXPECT_EQ(planned.convolution, taken.convolution);
  EXPECT_EQ(planned.ngram, taken.ngram);
  EXPECT_GE(planned.kv, taken.kv);  // the MTP block's cells are planned, and were not written here
}

// After a run with drafts: the rows that wait for a decision take memory then. How many cells the MTP block has depends
// on when drafts paid, up to the planned ones.
TEST(Plan, StatesAreWhatARunWithDraftsTakes) {
  Log log(LogLevel::Error);
  for (const bool anchored : {false, true}) {
    EngineOptions wanted = options();
    wanted.caches.anchored = anchored;
    Engine engine(wanted, log);
    GenerateRequest request;
    for (int32_t i = 0; i < 100; ++i) request.prompt.push_back(20 + i * 37 % 900);
    request.max_tokens = 30;
    request.ignore_end = true;
    request.draft = DraftKind::Mtp;
    std::unique_ptr<Slot> slot = engine.open(request, {});
    uint64_t most = 0;
    while (!slot->done()) {
      const Segment segment = slot->next(512);
      engine.forward().run({&segment, 1});
      most = std::max(most, slot->sequence().bytes().delta);
      slot->consume_prompt();
      if (slot->chooses()) slot->choose();
    }
    const int64_t length = slot->sequence().length();
    const StateBytes planned = state_bytes(engine.model().spec(), length, wanted.caches);
    const StateBytes taken = slot->sequence().bytes();
    EXPECT_EQ(planned.delta, most) << anchored;
    EXPECT_EQ(planned.delta, taken.delta) << anchored;
    EXPECT_EQ(planned.convolution, taken.convolution) << anchored;
    EXPECT_EQ(planned.ngram, taken.ngram) << anchored;
    EXPECT_GE(planned.kv, taken.kv) << anchored;
    EXPECT_GE(planned.index, taken.index) << anchored;
    EXPECT_EQ(plan_memory(engine.model().spec(), engine.model().file(), {length, 1, 512, wanted.caches}).states.total(),
              planned.total());
  }
}

TEST(Plan, ARunThatCannotFitIsRefusedBeforeItBegins) {
  Log log(LogLevel::Error);
  EngineOptions with_floor = options();
  with_floor.memory_floor = uint64_t{1} << 60;
  Engine engine(with_floor, log);
  GenerateRequest request;
  request.prompt = {1, 2, 3};
  request.max_tokens = 3;
  request.context = 100;
  try {
    engine.generate(request);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Memory);
    for (const char* part : {"need", "free", "-c", "-ctk", "fewer sequences"})
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
  request.context = 0;  // not asked for: the run begins, and ends when it looks at what is free
  const GenerateResult result = engine.generate(request);
  EXPECT_EQ(result.reason, FinishReason::MemoryFloor);
  EXPECT_TRUE(result.tokens.empty());
}

TEST(Plan, KeysAndValuesInAFileNeedDiskAndLittleMemory) {
  Log log(LogLevel::Error);
  Engine engine(options(), log);
  PlanRequest request;
  request.context = 65536;
  request.micro_batch = 64;
  const ModelSpec& spec = engine.model().spec();
  const MemoryPlan all = plan_memory(spec, engine.model().file(), request);
  request.caches.resident = 256;
  const MemoryPlan some = plan_memory(spec, engine.model().file(), request);
  EXPECT_EQ(all.kv_file, 0u);
  EXPECT_EQ(all.kv_memory, all.states.kv);
  EXPECT_EQ(some.states.kv, all.states.kv);
  EXPECT_EQ(some.kv_file, all.states.kv);
  EXPECT_GT(some.disk, 0u);
  EXPECT_EQ(all.need() - some.need(), all.states.kv - some.kv_memory);
  // Three layers with attention, the MTP block's among them: one as a whole, of the others 256 + 64 of 65536 positions.
  EXPECT_LT(some.kv_memory, all.states.kv / 3 + all.states.kv / 100);
  EXPECT_GE(some.kv_memory, all.states.kv / 3);
  // More positions in memory than there are: all of it.
  request.caches.resident = 1 << 24;
  EXPECT_EQ(plan_memory(spec, engine.model().file(), request).kv_memory, all.states.kv);
  // A file larger than any disk is refused as such.
  request.context = 1 << 24;
  request.slots = 1 << 20;
  const std::string refusal = does_not_fit(spec, engine.model().file(), request, 0);
  for (const char* part : {"file", "free in", kDefaultTierFolder, "-c", "--kv-file-dir"})
    EXPECT_NE(refusal.find(part), std::string::npos) << refusal;
}

// What is in memory at most is within what was planned.
TEST(Plan, AWorkingSetStaysWithinThePlan) {
  Log log(LogLevel::Error);
  EngineOptions in_a_file = options();
  in_a_file.caches.resident = 128;
  in_a_file.micro_batch = 64;
  Engine engine(in_a_file, log);
  GenerateRequest request;
  for (int32_t i = 0; i < 600; ++i) request.prompt.push_back(i * 37 % 900 + 20);
  request.max_tokens = 4;
  engine.generate(request);
  PlanRequest wanted;
  wanted.context = 604;
  wanted.micro_batch = 64;
  wanted.caches = in_a_file.caches;
  const MemoryPlan plan = plan_memory(engine.model().spec(), engine.model().file(), wanted);
  const FileTierStats file = engine.pool().file();
  EXPECT_LE(file.peak_resident, plan.kv_memory);
  EXPECT_LE(file.peak_used, plan.kv_file);
  EXPECT_LT(plan.kv_memory, plan.kv_file);
}

}  // namespace
}  // namespace strata
