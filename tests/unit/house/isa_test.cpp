// Object files with an instruction set of their own must not define weak symbols: the linker keeps one copy of an
// inline function for the whole program, and a copy with AVX instructions would stop on a processor without them.
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <string>

#include "support/process.h"

namespace {

namespace fs = std::filesystem;

TEST(House, ObjectsWithTheirOwnInstructionSetShareNoCode) {
  const std::regex name("_(avx2|avx512|avx512bf16|avx512vbmi|avx512vnni)\\.cpp\\.o$");
  int checked = 0;
  for (const auto& entry : fs::recursive_directory_iterator(STRATA_BINARY_DIR "/CMakeFiles")) {
    if (!std::regex_search(entry.path().string(), name)) continue;
    ++checked;
    const auto result = strata::test::run({"/usr/bin/nm", "--defined-only", entry.path().string()});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const std::regex weak("^\\S+ [WVu] (?!__odr_asan|DW\\.ref)\\S+", std::regex::multiline);
    std::smatch match;
    EXPECT_FALSE(std::regex_search(result.out, match, weak)) << entry.path() << ": " << match.str();
  }
#if defined(__x86_64__)
  EXPECT_GT(checked, 0);
#endif
}

}  // namespace
