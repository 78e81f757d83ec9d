// Arms for accelerators in the interpreter: the cases of `strata parity` on every target. By default the first cases of
// each arm, with TEST_ALL=1 all of them.
#include "evidence/parity.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>

#include "device/amdsim/decoder.h"
#include "ops/registry.h"

namespace strata::test {
namespace {

struct ArmOnTarget {
  std::string target;
  const OperatorEvidence* evidence;
  ArmInfo arm;
};
void PrintTo(const ArmOnTarget& one, std::ostream* out) {
  *out << one.target << " " << one.evidence->op << " " << one.arm.name;
}

std::vector<ArmOnTarget> every_arm() {
  std::vector<ArmOnTarget> list;
  for (const char* target : {"gfx1100", "gfx1151", "gfx1201", "gfx942"})
    for (const OperatorEvidence& evidence : operator_evidence())
      for (const ArmInfo& arm : evidence.arms)
        if (arm.image != nullptr) list.push_back({target, &evidence, arm});
  return list;
}

std::string name_of(const testing::TestParamInfo<ArmOnTarget>& info) {
  std::string name = info.param.target + "_" + info.param.evidence->op + "_" + info.param.arm.name;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
}

class SimulatedParity : public testing::TestWithParam<ArmOnTarget> {};

TEST_P(SimulatedParity, StaysInItsEvidence) {
  if (!amdsim::decoder_missing().empty()) GTEST_SKIP() << amdsim::decoder_missing();
  const bool all = std::getenv("TEST_ALL") != nullptr;
  constexpr int kCases = 20;        // of an arm by default
  constexpr double kSeconds = 1.5;  // that it may take, but for its first case
  ParityOptions options;
  options.accelerator = open_accelerator("sim:" + GetParam().target);
  const auto start = std::chrono::steady_clock::now();
  int done = 0;
  if (!all) {
    options.progress = [&done](int cases, int) { done = cases; };
    options.cancelled = [&] {
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      return done >= kCases || (done > 0 && seconds > kSeconds);
    };
  }
  const ParityReport report = run_parity(*GetParam().evidence, GetParam().arm, options);
  if (!report.ran()) GTEST_SKIP() << (report.refusals.empty() ? "no case" : report.refusals.front());
  std::string text;
  for (const ParityFailure& failure : report.failures)
    if (all || failure.test_case != "-")  // what only all cases can show
      text += "\n  " + failure.test_case + ": " + failure.what;
  EXPECT_EQ(text, "");
  EXPECT_LE(report.utilisation, 1);
}

INSTANTIATE_TEST_SUITE_P(Arms, SimulatedParity, testing::ValuesIn(every_arm()), name_of);

}  // namespace
}  // namespace strata::test
