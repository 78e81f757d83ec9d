// Thousands of malformed model files through the engine: each is refused with one line, or survived.
#include <gtest/gtest.h>

#include <cstdio>

#include "base/buffer.h"
#include "hostile/allocations.h"
#include "hostile/run_case.h"

namespace strata::test {
namespace {

struct Totals {
  size_t cases = 0, refused = 0, generated = 0, not_finite = 0, failed = 0;
  size_t most_beyond = 0;  // memory beyond the file's size
  double slowest = 0;
};

void run_group(const std::string& group, const MalformedCases& cases) {
  name_case_on_signals();
  Totals totals;
  std::string slowest;
  for (const MalformedCase& one : cases) {
    const CaseResult result = run_case(one);
    ++totals.cases;
    ++(result.generated ? totals.generated : result.loaded ? totals.not_finite : totals.refused);
    if (result.seconds > totals.slowest) totals.slowest = result.seconds, slowest = one.name;
    totals.most_beyond =
        std::max(totals.most_beyond, result.peak_bytes - std::min(result.peak_bytes, result.file_bytes));
    const std::string wrong = verdict(one, result);
    if (wrong.empty()) continue;
    if (++totals.failed <= 40) ADD_FAILURE() << one.name << ": " << wrong;
  }
  EXPECT_EQ(totals.failed, 0u);
  std::printf(
      "%s: %zu cases, %zu refused, %zu generated, %zu ended by their weights; slowest %.0f ms (%s), memory at most "
      "%.1f MiB beyond the file\n",
      group.c_str(), totals.cases, totals.refused, totals.generated, totals.not_finite, totals.slowest * 1e3,
      slowest.c_str(), static_cast<double>(totals.most_beyond) / 1048576);
}

TEST(Malformed, Truncations) { run_group("truncations", truncation_cases()); }
TEST(Malformed, Counts) { run_group("counts", count_cases()); }
TEST(Malformed, Container) { run_group("container", container_cases()); }
TEST(Malformed, SplitSets) { run_group("split", split_cases()); }
TEST(Malformed, Models) { run_group("model", model_cases()); }
TEST(Malformed, Tokenizers) { run_group("tokenizer", tokenizer_cases()); }
TEST(Malformed, Templates) { run_group("template", template_cases()); }
TEST(Malformed, Blocks) { run_group("blocks", block_cases()); }

class MalformedFamily : public testing::TestWithParam<const char*> {};
TEST_P(MalformedFamily, Keys) { run_group(std::string("keys of ") + GetParam(), key_cases(GetParam())); }
TEST_P(MalformedFamily, Tensors) { run_group(std::string("tensors of ") + GetParam(), tensor_cases(GetParam())); }
TEST_P(MalformedFamily, Scales) { run_group(std::string("scales of ") + GetParam(), scale_cases(GetParam())); }
INSTANTIATE_TEST_SUITE_P(Arch, MalformedFamily, testing::ValuesIn(kArchitectures),
                         [](const auto& test) { return std::string(test.param); });

TEST(MalformedList, HasThousandsOfCases) {
  size_t total = 0;
  for (const MalformedGroup& group : all_malformed()) total += group.cases.size();
  std::printf("malformed model files: %zu, of them %zu truncations\n", total, truncation_cases().size());
  EXPECT_GT(total - truncation_cases().size(), 3000u);
}

// The guard itself sees what it should.
TEST(MalformedList, MemoryIsCounted) {
  if (!kAllocationsCounted) GTEST_SKIP() << "under AddressSanitizer nothing is counted";
  const size_t before = allocated_bytes();
  reset_peak();
  {
    const std::string text(10u << 20, 'x');
    const Buffer buffer(20u << 20);
    EXPECT_GE(allocated_bytes() - before, 30u << 20);
  }
  EXPECT_LT(allocated_bytes() - before, 1u << 20);
  EXPECT_GE(peak_bytes() - before, 30u << 20);
}

}  // namespace
}  // namespace strata::test
