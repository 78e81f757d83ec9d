// Every input of the committed corpora through its fuzz body, then cut and damaged: what a fuzzer once found stays
// found.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <string>
#include <vector>

#include "base/random.h"
#include "fuzz_bodies.h"

void PrintTo(const FuzzBody& body, std::ostream* out) { *out << body.name; }

namespace strata::test {
namespace {

std::vector<std::filesystem::path> inputs_of(const std::string& name) {
  std::vector<std::filesystem::path> paths;
  const std::filesystem::path folder = std::filesystem::path(STRATA_CORPUS) / name;
  if (!std::filesystem::is_directory(folder)) return paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string contents(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class Replay : public testing::TestWithParam<FuzzBody> {};

TEST_P(Replay, CorpusAndItsNeighbours) {
  constexpr int kNeighbours = 60;  // of each input: enough to notice a body that rots, few enough for every test run
  const auto run = [](const std::string& bytes) {
    // From the heap without slack, so that a sanitizer sees a read beyond the end.
    const std::vector<uint8_t> exact(bytes.begin(), bytes.end());
    ASSERT_EQ(GetParam().run(exact.data(), exact.size()), 0);
  };
  run("");
  size_t inputs = 0;
  Random random(1);
  for (const std::filesystem::path& path : inputs_of(GetParam().name)) {
    SCOPED_TRACE(path.string());
    const std::string bytes = contents(path);
    run(bytes);
    ++inputs;
    for (int i = 0; i < kNeighbours && !bytes.empty(); ++i) {
      std::string near = bytes;
      const auto at = static_cast<size_t>(random.below(static_cast<int64_t>(bytes.size())));
      if (i % 3 == 0) near.resize(at);
      if (i % 3 == 1) near[at] = static_cast<char>(random.next());
      if (i % 3 == 2) near.insert(at, near, 0, static_cast<size_t>(random.below(64)));
      run(near);
    }
  }
  std::printf("%s: %zu inputs\n", GetParam().name, inputs);
  EXPECT_GT(inputs, 0u) << "no seeds in tests/fuzz/corpus/" << GetParam().name;
}

INSTANTIATE_TEST_SUITE_P(Corpus, Replay, testing::ValuesIn(kFuzzBodies),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace strata::test
