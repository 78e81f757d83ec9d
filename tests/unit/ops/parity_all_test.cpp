// Every arm of every operator stays inside its operator's evidence: the cases, properties, controls and mutants of
// `strata parity`, one test an arm. Arms for accelerators run on the emulation, those that take long there with
// TEST_ALL=1.
#include <gtest/gtest.h>

#include <cstdlib>

#include "evidence/parity.h"
#include "ops/registry.h"

namespace strata::test {
namespace {

struct ArmOfOperator {
  const OperatorEvidence* evidence;
  ArmInfo arm;
};

void PrintTo(const ArmOfOperator& one, std::ostream* out) { *out << one.evidence->op << " " << one.arm.name; }

std::vector<ArmOfOperator> every_arm() {
  std::vector<ArmOfOperator> list;
  for (const OperatorEvidence& evidence : operator_evidence())
    for (const ArmInfo& arm : evidence.arms) list.push_back({&evidence, arm});
  return list;
}

std::string name_of(const testing::TestParamInfo<ArmOfOperator>& info) {
  std::string name = info.param.evidence->op + "_" + info.param.arm.name;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
}

std::string listed(const ParityReport& report) {
  std::string text;
  for (const ParityFailure& failure : report.failures) text += "\n  " + failure.test_case + ": " + failure.what;
  return text;
}

// Takes half a minute and more on the emulation.
bool takes_long(const ArmOfOperator& one) {
  const std::string name = one.evidence->op + " " + one.arm.name;
  for (const char* longer :
       {"attention fma", "attention mma", "experts mma", "gated_delta columns", "gated_delta wy-fma",
        "gated_delta wy-mma", "gated_delta_anchored columns", "gated_delta_anchored mma", "matmul f32", "qsa_score fma",
        "qsa_select radix", "qsa_select sieve"})
    if (name == longer) return true;
  return false;
}

class ParityOf : public testing::TestWithParam<ArmOfOperator> {};

TEST_P(ParityOf, StaysInItsEvidence) {
  ParityOptions options;
  const bool emulated = GetParam().arm.image != nullptr;
  if (emulated && GetParam().evidence->op == "experts" && GetParam().arm.name == "f32")
    GTEST_SKIP() << "takes more than ten minutes on the emulation: run it on a card";
  if (emulated && takes_long(GetParam()) && std::getenv("TEST_ALL") == nullptr) GTEST_SKIP() << "set TEST_ALL=1";
  if (emulated) options.accelerator = open_accelerator("emu");
  const ParityReport report = run_parity(*GetParam().evidence, GetParam().arm, options);
  if (!report.ran()) GTEST_SKIP() << (report.refusals.empty() ? "no case" : report.refusals.front());
  EXPECT_TRUE(report.passed()) << listed(report);
  EXPECT_LE(report.utilisation, 1);
  // Exact operators use nothing of a bound of 0; a derived bound that is hardly used is a loose one.
  // The emulation rounds to nearest where a device may cut: it says nothing about how tight a bound is.
  if (report.utilisation > 0 && !emulated) {
    EXPECT_GE(report.utilisation, 0.001) << "derive a tighter bound";
  }
}

INSTANTIATE_TEST_SUITE_P(Arms, ParityOf, testing::ValuesIn(every_arm()), name_of);

}  // namespace
}  // namespace strata::test
