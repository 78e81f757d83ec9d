// Shipped kernels with one instruction taken out: the interpreter or the evidence of the operator must catch it. The
// unbroken code passes the same cases.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "device/amdsim/decoder.h"
#include "device/amdsim/program.h"
#include "device/amdsim/simulation.h"
#include "evidence/parity.h"
#include "ops/registry.h"

namespace strata::amdsim {
namespace {

struct Subject {
  const char *op, *arm, *image;
  const char* kernel = "";  // of the image; empty: all
};

const KernelImage* image_named(const std::string& name) {
  for (const KernelImage* image : kernel_images())
    if (name == image->name) return image;
  return nullptr;
}
std::span<const unsigned char> code_of(const std::string& image, const std::string& target) {
  if (const KernelImage* found = image_named(image))
    for (const AmdCode& one : found->amd)
      if (target == one.target) return one.code;
  return {};
}

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

struct Mutant {
  std::string what;
  ReplacedCode code;
};

// Where the code of a kernel ends: at the next kernel.
uint64_t end_of(const CodeObject& object, uint64_t entry) {
  uint64_t end = UINT64_MAX;
  for (const Kernel& other : object.kernels)
    if (other.entry > entry) end = std::min(end, other.entry);
  return end;
}

using Change = std::function<void(unsigned char* instruction, uint32_t bytes)>;

void remove(unsigned char* instruction, uint32_t bytes) {
  constexpr uint32_t kNop = 0xbf800000u;
  for (uint32_t at = 0; at < bytes; at += 4) std::memcpy(instruction + at, &kNop, 4);
}

// One mutant for each instruction of the image, or of one of its kernels, whose text begins so.
std::vector<Mutant> changed(const std::string& image, const std::string& target, const std::string& begin,
                            const std::string& kernel, const Change& change) {
  std::vector<Mutant> mutants;
  const auto code = code_of(image, target);
  const Program program(code);
  const Kernel* only = program.object().find(kernel);
  const uint64_t first = only == nullptr ? 0 : only->entry, last = end_of(program.object(), first);
  for (uint32_t k = 0; k + 1 < program.size(); ++k) {
    const uint32_t address = program[k].address;
    if (only != nullptr && (address < first || address >= last)) continue;
    if (!program.text_at(address).starts_with(begin)) continue;
    const uint32_t end = program[program[k].next].address;
    Mutant mutant{program.text_at(address) + " at " + std::to_string(address), {}};
    std::vector<unsigned char> bytes(code.begin(), code.end());
    const unsigned char* from = program.object().at(address);
    // Where the instruction lies in the file: its bytes and what follows.
    const auto found = std::search(bytes.begin(), bytes.end(), from, from + 64);
    if (found == bytes.end()) continue;
    change(&*found, end - address);
    mutant.code[image] = std::move(bytes);
    mutants.push_back(std::move(mutant));
  }
  return mutants;
}
std::vector<Mutant> without(const std::string& image, const std::string& target, const std::string& begin,
                            const std::string& kernel = {}) {
  return changed(image, target, begin, kernel, remove);
}

class AmdSimMutation : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!decoder_missing().empty()) GTEST_SKIP() << decoder_missing();
    if (code_of("norm", "gfx1100").empty()) GTEST_SKIP() << "no code objects in this build";
  }
  static void all_caught(const Subject& subject, const std::string& target, const std::string& instruction, int cases) {
    EXPECT_EQ(failure_of(subject, target, {}, cases), "") << "without a mutation";
    const auto mutants = without(subject.image, target, instruction, subject.kernel);
    EXPECT_FALSE(mutants.empty()) << instruction << " is not in " << subject.image;
    for (const Mutant& mutant : mutants) {
      const bool caught = !failure_of(subject, target, mutant.code, cases).empty();
      EXPECT_TRUE(caught) << target << " " << subject.image << ": " << mutant.what;
    }
  }
};

TEST_F(AmdSimMutation, EachExchangeOfLanesIsNeeded) {
  all_caught({"norm", "block", "norm"}, "gfx1100", "ds_bpermute_b32", 178);
}

TEST_F(AmdSimMutation, EachProductOfMatrixUnitsIsNeeded) {
  const Subject subject{"qsa_score", "wmma", "score_wmma_gfx", "score_wmma_f16_64"};
  for (const char* target : {"gfx1100", "gfx1201"}) all_caught(subject, target, "v_wmma", 1);
  all_caught(subject, "gfx942", "v_mfma", 1);
  // Rows of the tile of sums, as they are stored and as heads are read.
  all_caught(subject, "gfx1100", "ds_store", 1);
  all_caught(subject, "gfx1100", "ds_load", 4);  // five heads
}

// The first pass of the delta rule in chunks: rows, gates and their sums come from other waves. Low words behind it are
// beyond what a bound tells.
TEST_F(AmdSimMutation, PassesOfTheDeltaRuleNeedTheirBarriersAndProducts) {
  constexpr int kCases = 6;  // 31 rows and more
  for (const char* target : {"gfx1100", "gfx942"}) {
    const Subject fma{"gated_delta", "wy-fma", "delta_wy", "delta_wy_factors"};
    const Subject matrix{"gated_delta", "wy-wmma", "delta_wy_wmma_gfx", "wy_wmma_factors64"};
    const std::string product = std::string(target) == "gfx942" ? "v_mfma" : "v_wmma";
    all_caught(fma, target, "s_barrier", kCases);
    all_caught(matrix, target, "s_barrier", kCases);
    all_caught(matrix, target, product, kCases);
  }
}

// Lanes 16 to 31 load the rows of lanes 0 to 15: 128 bytes times lane % 16. Without that they load rows behind.
TEST_F(AmdSimMutation, ReplicationIsNeeded) {
  const auto mutants = changed("score_wmma_gfx", "gfx1100", "v_and_b32_e32 v", "score_wmma_f16_64",
                               [](unsigned char* instruction, uint32_t bytes) {
                                 uint32_t literal = 0;
                                 if (bytes == 8) std::memcpy(&literal, instruction + 4, 4);
                                 if (literal == 0x780) std::memcpy(instruction + 4, "\x80\x0f\0\0", 4);
                               });
  int tried = 0;
  for (const Mutant& mutant : mutants) {
    if (mutant.what.find("0x780") == std::string::npos) continue;
    ++tried;
    const std::string failure = failure_of({"qsa_score", "wmma", ""}, "gfx1100", mutant.code, 4);
    EXPECT_TRUE(failure.find("lanes 16 to 31 of a matrix operand") != std::string::npos ||
                failure.find("outside") != std::string::npos)
        << mutant.what << ": " << failure;
  }
  EXPECT_GT(tried, 0);
}

TEST_F(AmdSimMutation, BoundsAreNeeded) {
  // The first condition that a thread of residual_add comes to is whether it has an element.
  const Subject subject{"residual_add", "thread", "gate_act"};
  for (const char* target : {"gfx1100", "gfx1201"}) {
    const Program program(code_of(subject.image, target));
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
          EXPECT_NE(failure_of(subject, target, mutant.code, 38), "") << mutant.what;
        }
    EXPECT_EQ(tried, 1);
  }
}

}  // namespace
}  // namespace strata::amdsim
