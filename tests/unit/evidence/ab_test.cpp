#include "evidence/ab.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "unit/evidence/ab_case.h"

namespace strata {
namespace {

using test::ab_plan;
using test::ab_trial;
using test::steady_trial;

std::string refusal(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was refused";
}

void expect_refused(const std::function<void()>& body, const std::string& with) {
  const std::string what = refusal(body);
  EXPECT_NE(what.find(with), std::string::npos) << what;
}

bool reason(const AbJudgement& judgement, const std::string& text) {
  for (const std::string& one : judgement.reasons)
    if (one.find(text) != std::string::npos) return true;
  return false;
}

TEST(AbGates, AreReadAsTheyAreWritten) {
  const auto gates =
      parse_gates("prefill@128k>=+5%, decode>=-3%,holdout prefill@64K >= +2.5 %,prefill@1000>=0%", "--gate");
  ASSERT_EQ(gates.size(), 4u);
  EXPECT_EQ(gates[0].length, 131072);
  EXPECT_DOUBLE_EQ(gates[0].ratio(), 1.05);
  EXPECT_FALSE(gates[1].length);
  EXPECT_EQ(gates[1].metric, AbMetric::Decode);
  EXPECT_DOUBLE_EQ(gates[1].ratio(), 0.97);
  EXPECT_TRUE(gates[2].holdout);
  EXPECT_EQ(to_text(gates[0]), "prefill@128K>=+5%");
  EXPECT_EQ(to_text(gates[2]), "holdout prefill@64K>=+2.5%");
  EXPECT_EQ(to_text(gates[3]), "prefill@1000>=+0%");
  for (const AbGate& gate : gates) EXPECT_EQ(to_text(parse_gates(to_text(gate), "--gate")[0]), to_text(gate));
}

TEST(AbGates, OtherSyntaxIsRefusedWithItsPosition) {
  for (const auto& [text, what] :
       {std::pair("", "position 1"), std::pair("speed>=5%", "expected prefill or decode"),
        std::pair("prefill>5%", "expected >= "), std::pair("prefill@>=5%", "expected a length"),
        std::pair("prefill@4q>=5%", "position 10"), std::pair("prefill>=5", "expected %"),
        std::pair("prefill>=five%", "position 10"), std::pair("prefill>=+-5%", "expected a number"),
        std::pair("prefill>=1e3%", "expected %"), std::pair("prefill>=nan%", "expected a number"),
        std::pair("prefill>=inf%", "expected a number"), std::pair("prefill>=-100%", "above -100 %"),
        std::pair("prefill>=5%;decode>=1%", "position 12"), std::pair("prefill>=5%,", "position 13"),
        std::pair("holdout prefill>=2%", "a holdout needs a length"), std::pair("prefill@0>=5%", "expected a length"),
        std::pair("prefill@-4>=5%", "expected a length"),
        std::pair("prefill@9999999999999999999k>=5%", "expected a length"),
        std::pair("prefill@9999999999m>=5%", "at most")})
    expect_refused([&, gate = text] { parse_gates(gate, "--gate"); }, what);
  std::string many = "prefill>=1%";
  for (int i = 0; i < 64; ++i) many += ",prefill>=1%";
  expect_refused([&] { parse_gates(many, "--gate"); }, "more than 64 gates");
}

TEST(AbGates, LengthsAreSortedAndStandOnce) {
  EXPECT_EQ(parse_lengths("4k, 1K,100", "--lengths"), (std::vector<int64_t>{100, 1024, 4096}));
  expect_refused([] { parse_lengths("1k,1024", "--lengths"); }, "twice");
  expect_refused([] { parse_lengths("1k,,2k", "--lengths"); }, "position 4");
  expect_refused([] { parse_lengths("", "--lengths"); }, "expected a length");
}

TEST(AbPlanTest, WhatDecidesNothingIsRefused) {
  const auto with = [](const std::function<void(AbPlan&)>& change) {
    return [change] {
      AbPlan plan = ab_plan();
      change(plan);
      check_plan(plan);
    };
  };
  EXPECT_NO_THROW(check_plan(ab_plan()));
  expect_refused(with([](AbPlan& plan) { plan.gates.clear(); }), "without gates");
  expect_refused(with([](AbPlan& plan) { plan.gates[0].length = 512; }), "none of those measured (1K)");
  expect_refused(with([](AbPlan& plan) { plan.gates.push_back(plan.gates[0]); }), "another one for the same cells");
  expect_refused(with([](AbPlan& plan) { plan.overrides[0] = plan.overrides[1]; }), "do not differ");
  expect_refused(with([](AbPlan& plan) { plan.same_sides = true; }), "may not differ");
  expect_refused(with([](AbPlan& plan) { plan.pairs = 2; }), "needs 6");
  expect_refused(with([](AbPlan& plan) { plan.pairs = 0; }), "pairs of 0");
  expect_refused(with([](AbPlan& plan) { plan.pairs = 1000, plan.slots = 100; }), "ratios a length");
  expect_refused(with([](AbPlan& plan) { plan.generate = 0; }), "generated tokens");
  expect_refused(with([](AbPlan& plan) { plan.lengths = {}; }), "at least one length");
  expect_refused(with([](AbPlan& plan) { plan.lengths = {1024, 512}; }), "ascend");
  expect_refused(with([](AbPlan& plan) { plan.confidence = 1; }), "confidence");
  expect_refused(with([](AbPlan& plan) { plan.confidence = NAN; }), "confidence");
}

TEST(AbPlanTest, TheHashCoversEveryField) {
  const std::vector<std::function<void(AbPlan&)>> changes{
      [](AbPlan& plan) { plan.model += "x"; },
      [](AbPlan& plan) { plan.model_hash += "x"; },
      [](AbPlan& plan) { plan.settings[0].second = "3"; },
      [](AbPlan& plan) { plan.overrides[1][0].second = "avx512"; },
      [](AbPlan& plan) { std::swap(plan.overrides[0], plan.overrides[1]); },
      [](AbPlan& plan) { plan.lengths.push_back(2048); },
      [](AbPlan& plan) { ++plan.pairs; },
      [](AbPlan& plan) { ++plan.slots; },
      [](AbPlan& plan) { ++plan.generate; },
      [](AbPlan& plan) { ++plan.retries; },
      [](AbPlan& plan) { ++plan.seed; },
      [](AbPlan& plan) { plan.confidence = 0.951; },
      [](AbPlan& plan) { plan.same_bits = true; },
      [](AbPlan& plan) { plan.same_sides = true; },
      [](AbPlan& plan) { plan.gates[0].per_cent = 4.9; },
      [](AbPlan& plan) { plan.gates[0].holdout = true; },
      [](AbPlan& plan) { plan.gates[0].length = 1024; },
      [](AbPlan& plan) { plan.gates[0].metric = AbMetric::Decode; },
  };
  const std::string hash = plan_hash(ab_plan());
  EXPECT_EQ(hash, plan_hash(ab_plan()));
  for (size_t i = 0; i < changes.size(); ++i) {
    AbPlan plan = ab_plan();
    changes[i](plan);
    EXPECT_NE(plan_hash(plan), hash) << i;
  }
}

TEST(AbPlanTest, TheOrderCancelsALinearDrift) {
  int64_t a = 0, b = 0, order = 0;
  for (int64_t pair = 0; pair < 2; ++pair)
    for (int64_t slot = 0; slot < 2; ++slot)
      for (const bool second : {false, true}) ((first_side(pair, slot) == AbSide::A) != second ? a : b) += order++;
  EXPECT_EQ(a, b);
}

TEST(AbCells, OfThePlanPassAndOthersAreRefused) {
  const AbTrial good = steady_trial(ab_plan(), 1.1);
  EXPECT_NO_THROW(check_cells(good));
  const auto with = [&](const std::function<void(AbTrial&)>& change) {
    return [&good, change] {
      AbTrial trial = good;
      change(trial);
      check_cells(trial);
    };
  };
  expect_refused(with([](AbTrial& t) { t.cells[3].length = 2048; }), "length that is not planned");
  expect_refused(with([](AbTrial& t) { t.cells[3].pair = 5; }), "outside the planned pairs");
  expect_refused(with([](AbTrial& t) { t.cells[3].slot = -1; }), "outside the planned pairs");
  expect_refused(with([](AbTrial& t) { t.cells[3].attempt = 3; }), "exceeds the planned retries");
  expect_refused(with([](AbTrial& t) { t.cells[2].seconds = 0; }), "a time that is none");
  expect_refused(with([](AbTrial& t) { t.cells[2].seconds = NAN; }), "a time that is none");
  expect_refused(with([](AbTrial& t) { t.cells[2].tokens = 512; }), "planned are 1024");
  expect_refused(with([](AbTrial& t) { t.cells[2].output.clear(); }), "what came out");
  expect_refused(with([](AbTrial& t) { t.cells.push_back(t.cells[0]); }), "twice");
  expect_refused(with([](AbTrial& t) { t.cells[1].order = 1; }), "order number");
  expect_refused(with([](AbTrial& t) { t.cells[0].order = t.cells[1].order = 3; }), "order number");
  expect_refused(with([](AbTrial& t) {  // the two runs of the first pair in the other order
                   for (size_t i = 0; i < 4; ++i) t.cells[i].order = 1 - t.cells[i].order;
                 }),
                 "planned order");
  expect_refused(with([](AbTrial& t) {  // a second attempt although nothing failed: a better one could be picked
                   AbCell again = t.cells.back();
                   again.attempt = 1;
                   again.order += 1;
                   t.cells.push_back(again);
                 }),
                 "repeats an attempt that did not fail");
}

TEST(AbJudge, TheVerdictFollowsTheInterval) {
  const auto verdict = [](const std::string& gates, double ratio) {
    AbPlan plan = ab_plan(gates);
    plan.lengths = {1024, 4096};
    return judge(steady_trial(plan, ratio)).verdict;
  };
  EXPECT_EQ(verdict("prefill>=+5%", 1.06), AbVerdict::Promote);
  EXPECT_EQ(verdict("prefill>=+5%", 1.04), AbVerdict::Reject);
  EXPECT_EQ(verdict("prefill>=+5%", 1.05), AbVerdict::Inconclusive);
  EXPECT_EQ(verdict("decode>=-3%", 0.98), AbVerdict::Promote);
  EXPECT_EQ(verdict("prefill@4k>=+5%,decode>=-3%,holdout prefill@1k>=+2.5%", 1.06), AbVerdict::Promote);
  EXPECT_EQ(verdict("prefill@4k>=+5%,decode>=+8%", 1.06), AbVerdict::Reject);
  EXPECT_EQ(exit_code(AbVerdict::Promote), 0);
  EXPECT_EQ(exit_code(AbVerdict::Reject), 4);
  EXPECT_EQ(exit_code(AbVerdict::Inconclusive), 5);
  EXPECT_EQ(exit_code(AbVerdict::Void), 3);
  EXPECT_EQ(exit_code(AbVerdict::Incomplete), 3);
}

TEST(AbJudge, AGateWithoutALengthIsThatOfEveryLength) {
  AbPlan plan = ab_plan("prefill>=+5%");
  plan.lengths = {1024, 4096};
  const AbTrial trial = ab_trial(plan, [](const AbCell& cell) {
    const double gain = cell.length == 1024 ? 1.1 : 1.02;
    return (cell.side == AbSide::B ? 1 / gain : 1.0) * (1 + 1e-4 * static_cast<double>(cell.order % 7));
  });
  const AbJudgement judgement = judge(trial);
  EXPECT_EQ(judgement.verdict, AbVerdict::Reject);
  ASSERT_EQ(judgement.gates[0].lengths.size(), 2u);
  EXPECT_EQ(judgement.gates[0].lengths[0].second, AbOutcome::Pass);
  EXPECT_EQ(judgement.gates[0].lengths[1].second, AbOutcome::Fail);
}

TEST(AbJudge, FailedAttemptsAreCountedAndNeverUsed) {
  AbTrial trial = steady_trial(ab_plan(), 1.1);
  // The first pair's side B failed, both sides were repeated: the first attempt's times would say the opposite.
  std::vector<AbCell> cells(trial.cells.begin(), trial.cells.begin() + 4);
  for (AbCell& cell : cells) cell.seconds *= cell.side == AbSide::A ? 1e-3 : 1;
  cells.pop_back();
  cells.back().failure = "out of memory";
  for (AbCell& cell : trial.cells) {
    if (cell.pair == 0 && cell.slot == 0) cell.attempt = 1;
    cell.order += 2;
  }
  trial.cells.insert(trial.cells.begin(), cells.begin(), cells.end());
  EXPECT_NO_THROW(check_cells(trial));
  const AbJudgement judgement = judge(trial);
  EXPECT_EQ(judgement.failed_attempts, 1);
  EXPECT_EQ(judgement.verdict, AbVerdict::Promote);
  EXPECT_NEAR(judgement.comparisons[0].median, 1.1, 0.001);
}

TEST(AbJudge, DisturbedPairsAreFlaggedAndKept) {
  AbTrial trial = steady_trial(ab_plan(), 1.1);
  trial.cells[0].flags = {"other load"};
  trial.cells[0].seconds = 100;
  const AbJudgement judgement = judge(trial);
  EXPECT_EQ(judgement.disturbed, 1);
  EXPECT_EQ(judgement.comparisons[0].ratios.size(), 10u);
  EXPECT_GT(*std::max_element(judgement.comparisons[0].ratios.begin(), judgement.comparisons[0].ratios.end()), 100);
}

TEST(AbJudge, MissingCellsMakeItIncomplete) {
  AbTrial trial = steady_trial(ab_plan(), 1.1);
  trial.cells.resize(trial.cells.size() - 1);
  trial.stopped = "interrupted";
  AbJudgement judgement = judge(trial);
  EXPECT_EQ(judgement.verdict, AbVerdict::Incomplete);
  EXPECT_TRUE(reason(judgement, "1 of 20 ratios are missing: interrupted"));
  trial.cells.clear();
  judgement = judge(trial);
  EXPECT_EQ(judgement.verdict, AbVerdict::Incomplete);
  EXPECT_EQ(judgement.missing, 20);
}

TEST(AbJudge, ATrialInWhichAnArmDidNotRunIsVoid) {
  AbTrial trial = steady_trial(ab_plan(), 1.1);
  trial.arms[1].prefill = trial.arms[1].decode = "avx512";
  EXPECT_TRUE(reason(judge(trial), "side B: the requested arm of matmul never ran (avx512 ran)"));
  trial.arms[1].prefill = trial.arms[1].decode = "";
  EXPECT_TRUE(reason(judge(trial), "the operator was not called"));
  EXPECT_EQ(judge(trial).verdict, AbVerdict::Void);
  trial.arms[1].decode = "portable+avx2";  // it ran in decode alone, and the gate is on the prompt
  trial.arms[1].prefill = "portable";
  trial.arms[1].requested = "avx2";
  EXPECT_EQ(judge(trial).verdict, AbVerdict::Promote) << "arms are asked for by operator, not by phase";
  trial.arms[1] = {AbSide::B, 1024, "matmul", "", "avx512", "avx512"};
  EXPECT_TRUE(reason(judge(trial), "both sides ran the same arms"));
}

TEST(AbJudge, OutputsThatBreakTheirPromiseAreVoid) {
  AbPlan plan = ab_plan();
  AbTrial trial = steady_trial(plan, 1.1);
  trial.outputs[0] = {1024, false, 17, 3, 0.25};
  EXPECT_EQ(judge(trial).verdict, AbVerdict::Promote);  // nothing was promised
  plan.same_bits = true;
  trial.plan = plan;
  EXPECT_TRUE(reason(judge(trial), "promise the same bits, and differ at 1K (from generated token 3 on)"));
  trial.outputs[0] = {1024, true, 17, -1, 0};
  EXPECT_EQ(judge(trial).verdict, AbVerdict::Promote);
  trial.cells[8].output = "0000000000000000";
  EXPECT_TRUE(reason(judge(trial), "other outputs from run to run: prefill@1K"));
  EXPECT_EQ(judge(trial).verdict, AbVerdict::Void);
}

TEST(AbJudge, AnATrialOfEqualSidesMayFindNoGain) {
  AbPlan plan = ab_plan("prefill>=+1%,decode>=-3%");
  plan.overrides[1].clear();
  plan.same_sides = true;
  const auto verdict = [&](double ratio) {
    AbTrial trial = steady_trial(plan, ratio);
    trial.arms.clear();
    return judge(trial);
  };
  EXPECT_EQ(verdict(1).verdict, AbVerdict::Reject);
  EXPECT_EQ(verdict(1.01).verdict, AbVerdict::Inconclusive);
  EXPECT_TRUE(reason(verdict(1.1), "an A/A trial passed gate prefill>=+1%"));
  EXPECT_EQ(verdict(1.1).verdict, AbVerdict::Void);
}

}  // namespace
}  // namespace strata
