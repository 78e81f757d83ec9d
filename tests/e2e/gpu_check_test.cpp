// tools/gpu_check.sh on an AMD GPU: a HIP library whose launches are executed in the interpreter stands in for the
// card.
#include <gtest/gtest.h>

#include <filesystem>

#include "support/process.h"
#include "support/test_files.h"

namespace strata::test {
namespace {

ProcessResult check(const std::string& out, const std::string& device, const std::string& operators) {
  return run(
      {"/bin/bash", STRATA_SOURCE_DIR "/tools/gpu_check.sh", STRATA_BINARY_DIR "/strata", out, device, operators},
      {"PATH=/usr/local/bin:/usr/bin:/bin", "LD_LIBRARY_PATH=" STRATA_HIP_RUNS, "HOME=/nowhere"});
}

TEST(GpuCheck, ACardOfAmdPassesAndLeavesRecords) {
  const TempFolder folder;
  const ProcessResult result = check(folder.file("out"), "hip:0", "norm,argmax");
  if (result.out.find("no device code") != std::string::npos) GTEST_SKIP() << "no code objects in this build";
  if (result.out.find("cannot open shared object file: libLLVM") != std::string::npos) GTEST_SKIP() << "no libllvm19";
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_NE(result.out.find("hip:0"), std::string::npos) << result.out;
  const std::string records = folder.file("out/records/parity");
  EXPECT_NE(result.out.find("records to send: " + records), std::string::npos) << result.out;
  EXPECT_TRUE(std::filesystem::exists(records + "/norm/block@gfx1100.json"));
  EXPECT_TRUE(std::filesystem::exists(records + "/argmax/blocks@gfx1100.json"));
}

TEST(GpuCheck, WhatFailsIsSaid) {
  const TempFolder folder;
  const ProcessResult none = check(folder.file("out"), "hip:7", "norm");
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_NE(none.err.find("there is no hip:7 here"), std::string::npos) << none.err;
  const ProcessResult wrong = check(folder.file("out"), "hip:0", "norm,nonsense");
  if (wrong.out.find("no device code") != std::string::npos) GTEST_SKIP() << "no code objects in this build";
  EXPECT_EQ(wrong.exit_code, 1) << wrong.out;
  EXPECT_NE(wrong.out.find("parity of nonsense ended with 2"), std::string::npos) << wrong.out;
}

}  // namespace
}  // namespace strata::test
