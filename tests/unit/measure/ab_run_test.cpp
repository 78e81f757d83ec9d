#include "measure/ab_run.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "evidence/ab_gates.h"

namespace strata {
namespace {

AbPlan short_plan() {
  AbPlan plan;
  plan.model = STRATA_SOURCE_DIR "/models/strata-mini-q8_0.gguf";
  plan.overrides = {NamedValues{{"threads", "1"}}, NamedValues{{"threads", "2"}}};
  plan.lengths = {8, 20};
  plan.pairs = 2;
  plan.slots = 1;
  plan.confidence = 0.5;  // two ratios are enough
  plan.generate = 3;
  plan.retries = 1;
  plan.seed = 1;
  plan.same_bits = true;
  plan.gates = parse_gates("prefill>=-99%", "--gate");
  return plan;
}

std::array<AbEngineOptions, 2> sides_of(const AbPlan& plan) {
  std::array<AbEngineOptions, 2> sides;
  for (size_t i = 0; i < 2; ++i) {
    sides[i].engine.model = plan.model;
    sides[i].engine.threads = static_cast<int>(i) + 1;
    sides[i].engine.micro_batch = 7;
  }
  return sides;
}

struct Ran {
  AbTrial trial;
  AbJudgement judgement;
};

Ran run(const AbPlan& plan, const std::array<AbEngineOptions, 2>& sides, const AbHooks& hooks = {}) {
  Log log(LogLevel::Error);
  AbRunner runner(plan, sides, log);
  Ran ran;
  ran.trial.plan = plan;
  runner.run(ran.trial, hooks);
  check_cells(ran.trial);
  ran.judgement = judge(ran.trial);
  return ran;
}

TEST(AbRun, MeasuresThePlanInItsOrderAndComparesOutputs) {
  const AbPlan plan = short_plan();
  size_t told = 0;
  const Ran ran = run(plan, sides_of(plan), {.cell = [&](const AbCell&) { ++told; }, .progress = {}});
  EXPECT_EQ(ran.trial.cells.size(), 2u * 2 * 2 * 2);  // lengths, pairs, sides, metrics
  EXPECT_EQ(told, ran.trial.cells.size());
  EXPECT_EQ(ran.judgement.verdict, AbVerdict::Promote)
      << (ran.judgement.reasons.empty() ? "" : ran.judgement.reasons[0]);
  ASSERT_EQ(ran.trial.outputs.size(), 2u);
  EXPECT_TRUE(ran.trial.outputs[0].same_bits);
  EXPECT_EQ(ran.trial.outputs[0].rows, 4);
  bool prompt = false, decode = false;
  for (const AbArmUse& use : ran.trial.arms)
    if (use.op == "matmul") {
      prompt = prompt || !use.prefill.empty();
      decode = decode || !use.decode.empty();
    }
  EXPECT_TRUE(prompt && decode);
}

TEST(AbRun, DraftsChangeNoOutput) {
  AbPlan plan = short_plan();
  plan.generate = 12;
  plan.lengths = {20};
  auto sides = sides_of(plan);
  sides[1].draft = DraftKind::Lookup;
  const Ran ran = run(plan, sides);
  EXPECT_TRUE(ran.trial.outputs[0].same_bits);
  EXPECT_EQ(ran.judgement.verdict, AbVerdict::Promote)
      << (ran.judgement.reasons.empty() ? "" : ran.judgement.reasons[0]);
}

TEST(AbRun, OtherResultsAreFoundAndMeasured) {
  AbPlan plan = short_plan();
  plan.overrides = {NamedValues{{"cache_type_v", "f16"}}, NamedValues{{"cache_type_v", "q8_0"}}};
  plan.pairs = 1;
  auto sides = sides_of(plan);
  sides[1].engine.caches.values = DType::Q8_0;
  const Ran ran = run(plan, sides);
  EXPECT_FALSE(ran.trial.outputs[1].same_bits);
  EXPECT_GT(ran.trial.outputs[1].max_difference, 0);
  EXPECT_EQ(ran.judgement.verdict, AbVerdict::Void);  // the plan promised the same bits
}

TEST(AbRun, AFailedAttemptIsRepeatedWithBothSidesAndDeclared) {
  const AbPlan plan = short_plan();
  int calls = 0;
  const Ran ran =
      run(plan, sides_of(plan), {.cell = {}, .progress = [&](int64_t done, int64_t, const std::string& what) {
                                   // Once, in the output of side B in the second pair.
                                   if (done == 4 && what == "B, output" && ++calls == 1)
                                     throw Error(ErrorKind::Memory, "no memory");
                                 }});
  EXPECT_EQ(ran.judgement.failed_attempts, 1);
  EXPECT_EQ(ran.judgement.missing, 0);
  EXPECT_EQ(ran.judgement.verdict, AbVerdict::Promote);
  int failures = 0, repeated = 0;
  for (const AbCell& cell : ran.trial.cells) {
    failures += cell.failure == "no memory" && cell.metric == AbMetric::Decode;
    repeated += cell.attempt == 1;
  }
  EXPECT_EQ(failures, 1);
  EXPECT_EQ(repeated, 4);
}

TEST(AbRun, AttemptsThatKeepFailingEndTheTrial) {
  const AbPlan plan = short_plan();
  const Ran ran =
      run(plan, sides_of(plan), {.cell = {}, .progress = [&](int64_t done, int64_t, const std::string& what) {
                                   if (done == 4 && what.starts_with("A, prompt"))
                                     throw Error(ErrorKind::Memory, "no memory");
                                 }});
  EXPECT_EQ(ran.judgement.verdict, AbVerdict::Incomplete);
  EXPECT_EQ(ran.judgement.failed_attempts, 2);
  EXPECT_NE(ran.trial.stopped.find("all 2 attempts failed at 8: no memory"), std::string::npos) << ran.trial.stopped;
}

TEST(AbRun, AnInterruptionKeepsWhatWasMeasured) {
  const AbPlan plan = short_plan();
  std::atomic<bool> interrupted{false};
  AbHooks hooks;
  hooks.interrupted = &interrupted;
  int cells = 0;
  hooks.cell = [&](const AbCell&) { interrupted = ++cells == 6; };
  const Ran ran = run(plan, sides_of(plan), hooks);
  EXPECT_EQ(ran.trial.cells.size(), 6u);
  EXPECT_EQ(ran.trial.stopped, "interrupted");
  EXPECT_EQ(ran.judgement.verdict, AbVerdict::Incomplete);
}

TEST(AbRun, AnArmThatCannotRunVoidsTheTrial) {
  AbPlan plan = short_plan();
  plan.pairs = 1;
  auto sides = sides_of(plan);
  sides[1].engine.arms = {{"matmul", "no-such-arm"}};
  const Ran ran = run(plan, sides);
  EXPECT_EQ(ran.judgement.verdict, AbVerdict::Void);
}

TEST(AbRun, LengthsBeyondTheModelAreRefused) {
  AbPlan plan = short_plan();
  plan.lengths = {8, int64_t{1} << 24};
  Log log(LogLevel::Error);
  try {
    AbRunner(plan, sides_of(plan), log);
    FAIL() << "nothing was refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Usage);
    EXPECT_NE(error.message().find("length 16384K"), std::string::npos) << error.message();
  }
}

TEST(AbRun, AWarmUpThatFailsLeavesNoVerdict) {
  const AbPlan plan = short_plan();
  auto sides = sides_of(plan);
  sides[1].engine.sequence_bytes = 1;
  const Ran ran = run(plan, sides);
  EXPECT_EQ(ran.judgement.verdict, AbVerdict::Incomplete);
  EXPECT_NE(ran.trial.stopped.find("the warm-up at 8 failed on side B"), std::string::npos) << ran.trial.stopped;
}

}  // namespace
}  // namespace strata
