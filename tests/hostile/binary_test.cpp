// A sample of malformed files through the program itself, in a bounded address space: exit code 1, one line, no signal.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "fuzz/malformed.h"
#include "hostile/allocations.h"
#include "support/process.h"
#include "support/test_files.h"

namespace strata::test {
namespace {

const std::string kProgram = STRATA_BINARY_DIR "/strata";
// The program itself, its libraries and threads; the largest file of the sample has 100 MB.
constexpr int kAddressSpaceKiB = 1 << 20;

// AddressSanitizer reserves terabytes: no limit there.
ProcessResult run_limited(const std::vector<std::string>& arguments) {
  const std::string limit = kAllocationsCounted ? "ulimit -v " + std::to_string(kAddressSpaceKiB) + "; " : "";
  std::vector<std::string> command{"/bin/sh", "-c", limit + "exec \"$@\"", "sh", kProgram};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run(command);
}

size_t error_lines(const std::string& text) {
  std::istringstream lines(text);
  size_t count = 0;
  for (std::string line; std::getline(lines, line);) count += line.find("error:") != std::string::npos ? 1 : 0;
  return count;
}

// Refused cases spread over all groups, and some that end at their weights.
std::vector<MalformedCase> sample() {
  std::vector<MalformedCase> cases;
  for (MalformedGroup& group : all_malformed()) {
    std::vector<MalformedCase> wanted;
    for (MalformedCase& one : group.cases)
      if (one.expected == Expected::Refused || one.expected == Expected::NotFinite) wanted.push_back(std::move(one));
    const size_t count = std::min<size_t>(wanted.size(), 2);
    for (size_t i = 0; i < count; ++i) cases.push_back(wanted[wanted.size() * (2 * i + 1) / (2 * count)]);
  }
  for (MalformedCase& one : container_cases())
    if (one.name.find("100 MB") != std::string::npos) cases.push_back(std::move(one));
  return cases;
}

TEST(MalformedBinary, ExitsWithOneLine) {
  size_t ran = 0;
  for (const MalformedCase& one : sample()) {
    SCOPED_TRACE(one.name);
    const TempFolder folder;
    const std::vector<NamedBytes> files = one.files();
    for (const NamedBytes& file : files) folder.write(file.name, file.bytes);
    const ProcessResult result =
        run_limited({"generate", "-m", folder.file(files[0].name), "--tokens", "1,2,3", "-n", "2", "-t", "1"});
    EXPECT_EQ(result.signal, 0);
    EXPECT_FALSE(result.timed_out);
    EXPECT_EQ(result.exit_code, 1) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(error_lines(result.err), 1u) << result.err;
    if (one.expected == Expected::Refused) {
      EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
      EXPECT_NE(result.err.find(folder.file("")), std::string::npos) << "does not name the file: " << result.err;
    }
    ++ran;
  }
  std::printf("malformed files through the program: %zu\n", ran);
  EXPECT_GE(ran, 50u);
}

// A context of 2^31 positions takes memory as it is used, not as it is asked for.
TEST(MalformedBinary, AContextCostsWhatIsInIt) {
  const TempFolder folder;
  ModelImage image = base_image("qwen3");
  image.set("qwen3.context_length", gguf::Value::of_u32(INT32_MAX));
  const std::string path = folder.write("model.gguf", image.bytes());
  const ProcessResult fits = run_limited({"generate", "-m", path, "--tokens", "1,2,3", "-n", "2", "-t", "1"});
  EXPECT_EQ(fits.exit_code, 0) << fits.err;
  const ProcessResult all = run_limited({"generate", "-m", path, "--tokens", "1,2,3", "-n", "-1", "-t", "1"});
  EXPECT_EQ(all.exit_code, 0) << all.err;
}

}  // namespace
}  // namespace strata::test
