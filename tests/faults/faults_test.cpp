// The proof that parity can fail: every fault of base/fault.h, injected into every arm that has a place for it, must be
// caught. Prints what caught it.
#include <gtest/gtest.h>

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
      {Fault::TransposeTile, "TransposeTile", {"matmul"}},
      {Fault::SkipTail, "SkipTail", {"matmul"}},
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
      if (!cpu_features().has(arm.isa)) continue;
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

// Without a fault the same build passes: what fails above fails because of the fault.
TEST(FaultPlan, NothingFailsWithoutAFault) {
  for (const OperatorEvidence& evidence : operator_evidence())
    for (const ArmInfo& arm : evidence.arms) {
      if (evidence.op != "matmul") continue;
      EXPECT_TRUE(run_parity(evidence, arm, {}).passed()) << evidence.op << " " << arm.name;
    }
}

}  // namespace
}  // namespace strata
