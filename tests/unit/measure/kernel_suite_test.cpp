// What --suite prints and draws of what it measured.
#include "measure/kernel_suite.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace strata {
namespace {

SuiteRow made(DType type, int64_t rows, double seconds, double share, std::optional<double> target) {
  SuiteRow row;
  row.type = type;
  row.rows = rows;
  row.bytes = 2e6;
  row.operations = 8e6 * static_cast<double>(rows);
  row.result.arm = "avx512";
  row.result.median = row.result.fastest = row.result.slowest = seconds;
  row.read_bytes = 32e9;
  row.peak = 1e12;
  row.memory_bound = rows == 1;
  row.share = share;
  row.target = target;
  return row;
}

KernelSuite made_suite() {
  KernelSuite suite;
  suite.ceilings.threads = 2;
  suite.ceilings.read_bytes = 32e9;
  suite.ceilings.int8 = 1e12;
  suite.ceilings.f32 = 250e9;
  suite.rows = {made(DType::Q8_0, 1, 1e-4, 0.849, 0.85), made(DType::Q8_0, 256, 4e-3, 0.6, 0.60),
                made(DType::F16, 1, 1e-4, 0.7, {})};
  return suite;
}

TEST(KernelSuite, SaysWhetherAnAimIsReached) {
  const KernelSuite suite = made_suite();
  EXPECT_EQ(suite_line(suite.rows[0]),
            "| Q8_0 | 1 | avx512 | 100 | 20.0 | 80 | 85 % reading | 85 %: misses |\n");  // 84.9 %: no rounding up
  EXPECT_EQ(suite_line(suite.rows[1]), "| Q8_0 | 256 | avx512 | 4000 | 0.5 | 512 | 60 % peak | 60 %: holds |\n");
  EXPECT_EQ(suite_line(suite.rows[2]), "| F16 | 1 | avx512 | 100 | 20.0 | 80 | 70 % reading |  |\n");
}

TEST(KernelSuite, JsonAndCsvHoldWhatWasMeasured) {
  const KernelSuite suite = made_suite();
  const auto json = nlohmann::json::parse(suite_json(suite));
  EXPECT_EQ(json["ceilings"]["read_bytes_per_s"], 32e9);
  ASSERT_EQ(json["rows"].size(), 3u);
  EXPECT_EQ(json["rows"][0]["holds"], false);
  EXPECT_EQ(json["rows"][1]["holds"], true);
  EXPECT_EQ(json["rows"][1]["bound_by"], "peak");
  EXPECT_FALSE(json["rows"][2].contains("target"));
  const std::string csv = suite_csv(suite);
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 4);
  EXPECT_NE(csv.find("\nQ8_0,256,avx512,0.004,"), std::string::npos) << csv;
}

TEST(KernelSuite, TheRooflineHasRoofsAndALineForEachFormat) {
  const std::string svg = roofline_svg(made_suite());
  for (const char* part : {"roof, int8", "roof, f32", "Q8_0", "F16", "operations a byte", "read 32.0 GB/s"})
    EXPECT_NE(svg.find(part), std::string::npos) << part;
  EXPECT_EQ(svg.find("not shown"), std::string::npos) << svg;  // every point is a number
  EXPECT_NE(roofline_svg({}).find("no data"), std::string::npos);
}

// A queue's own choice: the first arm that is no opt-in and that can run.
TEST(KernelSuite, TheDefaultArmIsTheOneThatAQueueTakes) {
  BenchShape shape;
  shape.run = [](Queue&, int) {};
  shape.refusal = [](const std::string& arm) { return arm == "refused" ? std::string("no") : std::string(); };
  const auto info = [](const char* name, bool opt_in) {
    return ArmInfo{.name = name, .device_class = "", .opt_in = opt_in};
  };
  Ceilings ceilings;
  ceilings.read_bytes = ceilings.f32 = 1;
  BenchOptions options;
  options.threads = options.samples = 1;
  options.sample_seconds = 1e-6;
  const std::vector<ArmInfo> arms{info("asked", true), info("refused", false), info("taken", false),
                                  info("slow", false)};
  EXPECT_EQ(run_bench("op", arms, shape, ceilings, options).size(), 4u);
  options.default_arm = true;
  const std::vector<BenchResult> one = run_bench("op", arms, shape, ceilings, options);
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].arm, "taken");
  const std::vector<BenchResult> none = run_bench("op", {info("refused", false)}, shape, ceilings, options);
  ASSERT_EQ(none.size(), 1u);
  EXPECT_EQ(none[0].refusal, "no");
}

}  // namespace
}  // namespace strata
