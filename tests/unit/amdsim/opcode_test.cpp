// What single instructions compute, and that every opcode of the shipped kernels is among them.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "device/accelerator.h"
#include "device/amdsim/decoder.h"
#include "device/amdsim/program.h"
#include "unit/amdsim/single.h"

namespace strata::amdsim {
namespace {

class AmdSim : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!decoder_missing().empty()) GTEST_SKIP() << decoder_missing();
  }
};

TEST_F(AmdSim, InstructionsComputeWhatTheCasesSay) {
  ASSERT_GT(opcode_cases().size(), 2500u);
  int wrong = 0;
  for (const OpcodeCase& one : opcode_cases())
    for (const std::string& target : one.targets) {
      const std::string result = run_case(one, target);
      if (result.empty()) continue;
      if (++wrong <= 40) ADD_FAILURE() << target << " line " << one.line << ": " << one.text << ": " << result;
    }
  EXPECT_EQ(wrong, 0);
}

// Control flow and waits are tested by small kernels (kernel_test.cpp).
const std::set<std::string> kByKernels = {"s_branch",
                                          "s_cbranch_scc0",
                                          "s_cbranch_scc1",
                                          "s_cbranch_vccz",
                                          "s_cbranch_vccnz",
                                          "s_cbranch_execz",
                                          "s_cbranch_execnz",
                                          "s_getpc_b64",
                                          "s_setpc_b64",
                                          "s_swappc_b64",
                                          "s_barrier",
                                          "s_barrier_signal",
                                          "s_barrier_wait",
                                          "s_endpgm",
                                          "s_waitcnt",
                                          "s_waitcnt_vscnt",
                                          "s_wait_loadcnt",
                                          "s_wait_storecnt",
                                          "s_wait_dscnt",
                                          "s_wait_kmcnt",
                                          "s_wait_loadcnt_dscnt",
                                          "s_wait_storecnt_dscnt"};
// Without effect on what the interpreter models.
const std::set<std::string> kHints = {"s_nop",
                                      "s_delay_alu",
                                      "s_clause",
                                      "s_sendmsg",
                                      "s_code_end",
                                      "s_set_inst_prefetch_distance",
                                      "s_waitcnt_depctr",
                                      "buffer_gl0_inv",
                                      "buffer_gl1_inv",
                                      "buffer_inv",
                                      "buffer_wbl2",
                                      "global_inv",
                                      "global_wb",
                                      "s_wait_bvhcnt",
                                      "s_wait_samplecnt",
                                      "s_wait_expcnt",
                                      "s_setprio",
                                      "s_sleep",
                                      "s_wait_alu",
                                      "global_wbinv",
                                      "s_icache_inv"};

TEST_F(AmdSim, EveryShippedOpcodeHasACase) {
  std::map<std::string, std::set<std::string>> tested;
  for (const OpcodeCase& one : opcode_cases())
    for (const std::string& target : one.targets)
      for (const std::string& name : opcode_names(one.text)) tested[target].insert(name);
  std::map<std::string, std::string> missing;  // and where it is
  size_t objects = 0;
  for (const KernelImage* image : kernel_images())
    for (const AmdCode& code : image->amd) {
      ++objects;
      const Program program(code.code);
      std::set<uint32_t> seen;
      Decoder decoder(program.target());
      std::set<std::string> names;
      std::string text;
      for (uint32_t k = 0; k + 1 < program.size(); ++k) {
        const Instruction& i = program[k];
        if (i.pair == 0 && i.name != nullptr && names.count(i.name) != 0) continue;
        for (const std::string& name : opcode_names(program.text_at(i.address))) {
          if (i.name != nullptr) names.insert(name);
          if (kByKernels.count(name) != 0 || kHints.count(name) != 0 || tested[code.target].count(name) != 0) continue;
          missing[std::string(code.target) + " " + name] = image->name;
        }
      }
    }
  for (const auto& [opcode, image] : missing) ADD_FAILURE() << opcode << " of " << image << " has no case";
  if (objects == 0) GTEST_SKIP() << "no code objects in this build";
}

}  // namespace
}  // namespace strata::amdsim
