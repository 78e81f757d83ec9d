// The proof that parity can fail: every fault of base/fault.h, injected into every arm that has a place for it, must be
// caught. Prints what caught it.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "base/fault.h"
#include "ops/registry.h"

namespace strata {
namespace {

struct Planned {
  Fault fault;
  const char* name;
  std::vector<std::string> operators;  // with a place for it
};

const std::vector<Planned>& plan() {
  static const std::vector<Planned> list{
      {Fault::DropLane,
       "DropLane",
       {"attention", "sparse_attention", "gated_delta", "gated_delta_anchored", "norm", "qsa_pool", "qsa_score"}},
      {Fault::TransposeTile,
       "TransposeTile",
       {"attention", "sparse_attention", "gated_delta", "gated_delta_anchored", "matmul", "qsa_score"}},
      {Fault::SkipTail,
       "SkipTail",
       {"attention", "sparse_attention", "gated_delta", "gated_delta_anchored", "matmul", "norm", "qsa_score",
        "qsa_select"}},
      {Fault::GateAtChunkEnd, "GateAtChunkEnd", {"gated_delta"}},
      {Fault::OverflowExp, "OverflowExp", {"attention", "sparse_attention", "gated_delta", "gated_delta_anchored"}},
      {Fault::WrongHeadMapping,
       "WrongHeadMapping",
       {"attention", "sparse_attention", "gated_delta", "gated_delta_anchored"}},
      {Fault::WritePastSet,
       "WritePastSet",
       {"attention", "sparse_attention", "gated_delta", "gated_delta_anchored", "gated_delta_gates", "norm",
        "qsa_score", "qsa_select"}},
      {Fault::SelectOneShort, "SelectOneShort", {"qsa_select"}},
      {Fault::MergeEmptySplit, "MergeEmptySplit", {"attention", "sparse_attention"}},
      {Fault::RopeAtLastCell, "RopeAtLastCell", {"qsa_pool"}},
      {Fault::PooledInsteadOfDead, "PooledInsteadOfDead", {"qsa_score"}},
  };
  return list;
}

struct Outcome {
  bool met = false;  // the arm has a place for the fault
  bool caught = false;
  std::string by;
};

Outcome inject(Fault which, const OperatorEvidence& evidence, const ArmInfo& arm) {
  constexpr int kCasesUntilMet = 200;
  ParityOptions options;
  options.stop_at_failure = true;
  int cases = 0;
  options.progress = [&](int done, int) { cases = done; };
  options.cancelled = [&] { return cases >= kCasesUntilMet && fault_hits == 0; };
  fault_hits = 0;
  active_fault = which;
  const ParityReport report = run_parity(evidence, arm, options);
  active_fault = Fault::None;
  Outcome outcome;
  outcome.met = fault_hits > 0;
  if (!outcome.met || report.failures.empty()) return outcome;
  outcome.caught = true;
  outcome.by = report.failures.front().test_case + ": " + report.failures.front().what;
  return outcome;
}

class Faults : public ::testing::TestWithParam<size_t> {};

TEST_P(Faults, AreCaughtByParity) {
  const Planned& planned = plan()[GetParam()];
  for (const std::string& op : planned.operators) {
    const OperatorEvidence* evidence = find_operator(op);
    ASSERT_NE(evidence, nullptr) << op;
    int met = 0;
    for (const ArmInfo& arm : evidence->arms) {
      if (arm.image != nullptr || !cpu_features().has(arm.isa)) continue;
      const Outcome outcome = inject(planned.fault, *evidence, arm);
      met += outcome.met;
      EXPECT_EQ(outcome.caught, outcome.met) << planned.name << " in " << op << " " << arm.name << " passes parity";
      if (outcome.caught)
        printf("%-20s %-22s %-14s %s\n", planned.name, op.c_str(), arm.name.c_str(), outcome.by.c_str());
    }
    EXPECT_GT(met, 0) << "no arm of " << op << " has a place for " << planned.name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Faults, ::testing::Range(size_t{0}, plan().size()),
                         [](const auto& test) { return std::string(plan()[test.param].name); });

TEST(FaultPlan, NamesEveryFault) {
  std::map<Fault, int> seen;
  for (const Planned& planned : plan()) ++seen[planned.fault];
  for (int i = 1; i < static_cast<int>(Fault::Count); ++i) EXPECT_EQ(seen[static_cast<Fault>(i)], 1) << i;
}

// Without a fault the same build passes: what fails above fails because of the fault.
TEST(FaultPlan, NothingFailsWithoutAFault) {
  for (const OperatorEvidence& evidence : operator_evidence())
    for (const ArmInfo& arm : evidence.arms) {
      if (evidence.op != "matmul" && evidence.op != "norm") continue;  // the others: test_ops
      if (arm.image != nullptr) continue;                              // has no place for a fault
      EXPECT_TRUE(run_parity(evidence, arm, {}).passed()) << evidence.op << " " << arm.name;
    }
}

}  // namespace
}  // namespace strata
