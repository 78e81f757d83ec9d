// The build gate of code for AMD GPUs: what every kernel needs on every target, with a table.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "device/accelerator.h"
#include "device/amd_code.h"

namespace strata {
namespace {

// Conditions of 64 lanes take two SGPRs each, of which a kernel has 102: on gfx942 some wait in lanes of a VGPR. No
// memory is touched. At most so many, by kernel; gfx11 and gfx12 have none.
const std::map<std::string, uint32_t> kSgprSpills = {
    {"experts_activate_1", 43}, {"experts_activate_4", 52},  {"experts_project_1", 12},    {"experts_project_4", 24},
    {"attention_fma", 10},      {"gated_delta_chunk64", 82}, {"gated_delta_chunk128", 52}, {"gated_delta_chunk256", 36},
};

struct Row {
  std::string target;
  AmdKernel kernel;
};

std::vector<Row> all_kernels() {
  std::vector<Row> rows;
  for (const KernelImage* image : kernel_images())
    for (const AmdCode& code : image->amd) {
      const AmdCodeInfo info = read_amd_code(code.code, std::string(image->name) + " for " + code.target);
      EXPECT_EQ(info.target, code.target) << image->name;
      for (const AmdKernel& kernel : info.kernels) rows.push_back({code.target, kernel});
    }
  return rows;
}

TEST(AmdBuild, EveryKernelOfAnImageIsInItsCodeObjects) {
  for (const KernelImage* image : kernel_images()) {
    std::set<std::string> emulated;
    for (const EmulatedKernel& kernel : image->emulated) emulated.insert(kernel.name);
    for (const AmdCode& code : image->amd) {
      std::set<std::string> compiled;
      for (const AmdKernel& kernel : read_amd_code(code.code, image->name).kernels) compiled.insert(kernel.name);
      if (emulated.empty()) continue;  // for AMD GPUs alone
      EXPECT_EQ(compiled, emulated) << image->name << " for " << code.target;
    }
  }
}

TEST(AmdBuild, NoKernelSpillsOrTakesMoreSharedMemoryThanABlockHas) {
  const std::vector<Row> rows = all_kernels();
  if (rows.empty()) GTEST_SKIP() << "this build has no device code for AMD GPUs";
  std::printf("%-28s %-8s %4s %5s %5s %5s %6s %7s %7s %8s\n", "kernel", "target", "wave", "vgprs", "agprs", "sgprs",
              "spills", "scratch", "shared", "threads");
  for (const auto& [target, kernel] : rows) {
    std::printf("%-28s %-8s %4u %5u %5u %5u %2u/%-3u %7u %7u %8u\n", kernel.name.c_str(), target.c_str(), kernel.wave,
                kernel.vgprs, kernel.agprs, kernel.sgprs, kernel.vgpr_spills, kernel.sgpr_spills, kernel.scratch_bytes,
                kernel.shared_bytes, kernel.most_threads);
    const std::string where = kernel.name + " for " + target;
    const bool wide = target == "gfx942";
    const auto allowed = kSgprSpills.find(kernel.name);
    EXPECT_EQ(kernel.vgpr_spills, 0u) << where;
    EXPECT_LE(kernel.sgpr_spills, wide && allowed != kSgprSpills.end() ? allowed->second : 0u) << where;
    EXPECT_EQ(kernel.scratch_bytes, 0u) << where;
    EXPECT_FALSE(kernel.dynamic_stack) << where;
    EXPECT_LE(kernel.shared_bytes, 64u << 10) << where;
    EXPECT_EQ(kernel.wave, wide ? 64u : 32u) << where;
    EXPECT_GT(kernel.argument_bytes, 0u) << where;
    EXPECT_LE(kernel.argument_bytes, 4000u) << where;
  }
}

// Lines of a code object's disassembly with `text`, by kernel.
std::map<std::string, int> count_instructions(const std::string& file, const std::string& text) {
  std::map<std::string, int> counts;
  const std::string command = "llvm-objdump-19 -d " + file + " 2>&1";
  FILE* pipe = ::popen(command.c_str(), "r");
  char line[512];
  std::string kernel;
  while (pipe != nullptr && std::fgets(line, sizeof(line), pipe) != nullptr) {
    const std::string one = line;
    if (const size_t at = one.find(" <"); at == 16)
      kernel = one.substr(at + 2, one.find('>') - at - 2);
    else
      counts[kernel] += one.find(text) != std::string::npos ? 1 : 0;
  }
  if (pipe != nullptr) ::pclose(pipe);
  return counts;
}

std::string no_disassembly(const std::string& file) {
  if (::access(file.c_str(), R_OK) != 0) return "no device code for AMD GPUs";
  return std::system("llvm-objdump-19 --version > /dev/null 2>&1") != 0 ? "no llvm-objdump-19" : "";
}

// Sixteen keys by two blocks of rows, then the fold of a block; numbers in two words are three products.
TEST(AmdBuild, TheDeltaRuleMultipliesSixteenKeysByThreeInstructions) {
  const std::string folder = STRATA_BINARY_DIR "/device/delta_wy_wmma.gfx.";
  if (const std::string reason = no_disassembly(folder + "gfx1100.co"); !reason.empty()) GTEST_SKIP() << reason;
  for (const std::string target : {"gfx1100", "gfx1151", "gfx1201", "gfx942"}) {
    const std::string product = target == "gfx942" ? "v_mfma_f32_16x16x16_f16" : "v_wmma_f32_16x16x16_f16";
    auto counts = count_instructions(folder + target + ".co", product);
    for (const int groups : {4, 8, 16})
      EXPECT_EQ(counts["wy_wmma_scan" + std::to_string(16 * groups)], groups * (2 * 3 + 3)) << target;
  }
}

TEST(AmdBuild, TheScorerMultipliesASliceOfSixteenDimsAnInstruction) {
  const std::string folder = STRATA_BINARY_DIR "/device/score_wmma.gfx.";
  if (const std::string reason = no_disassembly(folder + "gfx1100.co"); !reason.empty()) GTEST_SKIP() << reason;
  for (const char* target : {"gfx1100", "gfx1151", "gfx1201", "gfx942"}) {
    const bool wide = std::string(target) == "gfx942";
    for (const std::string form : {"f16", "bf16"}) {
      auto counts =
          count_instructions(folder + target + ".co", (wide ? "v_mfma_f32_16x16x16_" : "v_wmma_f32_16x16x16_") + form);
      EXPECT_EQ(counts["score_wmma_" + form + "_64"], 4) << target;
      EXPECT_EQ(counts["score_wmma_" + form + "_128"], 8) << target;
    }
  }
}

TEST(AmdBuild, ABrokenCodeObjectIsOneErrorInBoundedTime) {
  std::vector<unsigned char> bytes;
  for (const KernelImage* image : kernel_images())
    if (!image->amd.empty()) bytes.assign(image->amd[0].code.begin(), image->amd[0].code.end());
  if (bytes.empty()) GTEST_SKIP() << "this build has no device code for AMD GPUs";
  auto read = [](std::span<const unsigned char> code) {
    try {
      (void)read_amd_code(code, "broken");
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Format);
    }
  };
  for (size_t size = 0; size < bytes.size(); size += 1 + size / 16) read({bytes.data(), size});
  std::mt19937 random(7);
  for (int turn = 0; turn < 3000; ++turn) {
    std::vector<unsigned char> changed = bytes;
    for (int i = 0; i < 4; ++i) changed[random() % (turn % 2 == 0 ? 1024 : changed.size())] = random() % 256;
    read(changed);
  }
}

}  // namespace
}  // namespace strata
