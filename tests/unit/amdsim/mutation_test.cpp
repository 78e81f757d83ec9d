// Shipped kernels with one instruction taken out: the interpreter or the evidence of the operator must catch it. The
// unbroken code passes the same cases.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "device/amdsim/decoder.h"
#include "device/amdsim/program.h"
#include "device/amdsim/simulation.h"
#include "evidence/parity.h"
#include "ops/registry.h"
#include "unit/amdsim/mutants.h"

namespace strata::amdsim {
namespace {

struct Subject {
  const char *op, *arm, *image;
};

// The first failure of a case; empty: all passed.
std::string failure_of(const Subject& subject, const std::string& target, ReplacedCode replaced, int most) {
  for (const OperatorEvidence& evidence : operator_evidence())
    for (const ArmInfo& arm : evidence.arms) {
      if (evidence.op != subject.op || arm.name != subject.arm) continue;
      ParityOptions options;
      options.accelerator = open_simulation(target, std::move(replaced));
      options.stop_at_failure = true;
      int done = 0;
      options.progress = [&done](int cases, int) { done = cases; };
      options.cancelled = [&] { return done >= most; };
      const ParityReport report = run_parity(evidence, arm, options);
      for (const ParityFailure& failure : report.failures)
        if (failure.test_case != "-") return failure.what;
      return report.ran() ? "" : "did not run";
    }
  return "no such arm";
}

class AmdSimMutation : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!decoder_missing().empty()) GTEST_SKIP() << decoder_missing();
    if (shipped_code("norm", "gfx1100").empty()) GTEST_SKIP() << "no code objects in this build";
  }
  // `needless`: which of the instructions, counted from 0, has no effect on a kernel that is right.
  static void all_caught(const Subject& subject, const std::string& target, const std::string& instruction, int cases,
                         int needless = -1) {
    EXPECT_EQ(failure_of(subject, target, {}, cases), "") << "without a mutation";
    const auto mutants = without(subject.image, target, instruction);
    EXPECT_FALSE(mutants.empty()) << instruction << " is not in " << subject.image;
    for (const Mutant& mutant : mutants) {
      const bool caught = !failure_of(subject, target, mutant.replaced(), cases).empty();
      EXPECT_EQ(caught, needless-- != 0) << target << " " << subject.image << ": " << mutant.what;
    }
  }
};

// The second barrier of block_sum lets a kernel use the scratch memory again: one sum is all that these need.
TEST_F(AmdSimMutation, EachBarrierIsNeeded) {
  for (const char* target : {"gfx1100", "gfx942"}) {
    all_caught({"norm", "block", "norm"}, target, "s_barrier", 178, 1);
    all_caught({"argmax", "blocks", "argmax"}, target, "s_barrier", 109);
  }
  all_caught({"norm", "block", "norm"}, "gfx1201", "s_barrier_wait", 178);
}

TEST_F(AmdSimMutation, EachExchangeOfLanesIsNeeded) {
  all_caught({"norm", "block", "norm"}, "gfx1100", "ds_bpermute_b32", 178);
}

TEST_F(AmdSimMutation, BoundsAreNeeded) {
  // The first condition that a thread of residual_add comes to is whether it has an element.
  const Subject subject{"residual_add", "thread", "gate_act"};
  for (const char* target : {"gfx1100", "gfx1201"}) {
    const Program program(shipped_code(subject.image, target));
    const int32_t first = program.index_at(program.object().find("residual_add_elements")->entry);
    std::string begin;
    for (auto k = static_cast<uint32_t>(first); begin.empty(); ++k)
      if (const std::string text = program.text_at(program[k].address);
          text.starts_with("v_cmpx_") || text.find("saveexec") != std::string::npos)
        begin = std::to_string(program[k].address);
    int tried = 0;
    for (const char* form : {"v_cmpx_", "s_and_saveexec_"})
      for (const Mutant& mutant : without(subject.image, target, form))
        if (mutant.what.ends_with(" at " + begin)) {
          ++tried;
          EXPECT_NE(failure_of(subject, target, mutant.replaced(), 38), "") << mutant.what;
        }
    EXPECT_EQ(tried, 1);
  }
}

}  // namespace
}  // namespace strata::amdsim
