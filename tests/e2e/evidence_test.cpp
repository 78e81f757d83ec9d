// strata parity and strata evidence from outside.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "support/process.h"
#include "support/test_files.h"

namespace strata::test {
namespace {

ProcessResult strata(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), STRATA_BINARY_DIR "/strata");
  return run(arguments);
}

// The state that `strata evidence` shows of the portable arm of matmul.
std::string portable_state(const std::string& records) {
  const ProcessResult result = strata({"evidence", "--op", "matmul", "--records", records, "--json"});
  for (const nlohmann::json& row : nlohmann::json::parse(result.out))
    if (row["arm"] == "portable") return row["state"];
  return "missing";
}

TEST(Evidence, ParityPassesAndRecords) {
  const TempFolder folder;
  const std::string records = folder.file("records");
  EXPECT_EQ(portable_state(records), "never run");
  const ProcessResult result = strata({"parity", "--op", "matmul", "--record", "--records", records, "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
  const nlohmann::json row = nlohmann::json::parse(result.out)[0];
  EXPECT_EQ(row["verdict"], "pass");
  EXPECT_EQ(row["mutants"], row["mutants_caught"]);
  EXPECT_GT(row["controls"].get<int>(), 0);
  EXPECT_EQ(portable_state(records), "verified");
}

// What compute-sanitizer found goes into the records of its class, and is lost when they are made again.
TEST(Evidence, SummariesOfSanitizersStandInRecords) {
  const TempFolder folder;
  const std::string records = folder.file("records"), summary = folder.file("sanitizer.json");
  const std::vector<std::string> parity{"parity",   "--op",     "norm",      "--arm",
                                        "portable", "--record", "--records", records};
  ASSERT_EQ(strata(parity).exit_code, 0);
  auto row = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"evidence", "--op", "norm", "--arm", "portable", "--records", records, "--json"});
    return nlohmann::json::parse(strata(more).out)[0];
  };
  EXPECT_EQ(row({})["sanitizers"], 0);
  std::ofstream(summary) << R"({"class": "cpu-portable", "commit": "c", "date": "d",
                          "errors": {"norm": {"memcheck": 0, "racecheck": null, "initcheck": 2}, "nothing": {}}})";
  const nlohmann::json found = row({"--sanitizer", summary});
  EXPECT_EQ(found["sanitizers"], 2);
  EXPECT_EQ(found["sanitizers_clean"], 1);
  EXPECT_EQ(found["state"], "verified");
  EXPECT_EQ(row({}), found);
  ASSERT_EQ(strata(parity).exit_code, 0);
  EXPECT_EQ(row({})["sanitizers"], 0);
  std::ofstream(summary) << "{}";
  const ProcessResult wrong = strata({"evidence", "--records", records, "--sanitizer", summary});
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_NE(wrong.err.find("is no summary of sanitizers"), std::string::npos) << wrong.err;
}

// Every case is in one part; parts are judged by their cases alone, and make no record.
TEST(Evidence, PartsOfASuiteMakeNoRecord) {
  int cases = 0;
  for (const char* part : {"1/3", "2/3", "3/3"}) {
    const ProcessResult result = strata({"parity", "--op", "norm", "--arm", "portable", "--part", part, "--json"});
    ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
    cases += nlohmann::json::parse(result.out)[0]["cases"].get<int>();
  }
  const ProcessResult whole = strata({"parity", "--op", "norm", "--arm", "portable", "--json"});
  EXPECT_EQ(nlohmann::json::parse(whole.out)[0]["cases"], cases);
  for (const char* part : {"0/3", "4/3", "1", "1/3x", "1/1001"})
    EXPECT_EQ(strata({"parity", "--op", "norm", "--part", part}).exit_code, 2) << part;
  EXPECT_EQ(strata({"parity", "--op", "norm", "--part", "1/3", "--record"}).exit_code, 2);
}

// A run on the emulation proves nothing about a card.
TEST(Evidence, TheEmulationRunsKernelsButRecordsNothing) {
  const TempFolder folder;
  const ProcessResult run = strata({"parity", "--op", "norm", "--device", "emu"});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_NE(run.out.find("emu "), std::string::npos) << run.out;
  const std::string records = folder.file("records");
  const ProcessResult refused = strata({"parity", "--op", "norm", "--device", "emu", "--record", "--records", records});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("proves nothing"), std::string::npos) << refused.err;
  EXPECT_EQ(strata({"parity", "--op", "norm", "--device", "cuda:x"}).exit_code, 2);
}

TEST(Evidence, UnknownNamesAreWrongUsage) {
  const ProcessResult op = strata({"parity", "--op", "matmol"});
  EXPECT_EQ(op.exit_code, 2);
  EXPECT_NE(op.err.find("did you mean matmul"), std::string::npos) << op.err;
  EXPECT_EQ(strata({"parity", "--op", "matmul", "--only-arm", "warp"}).exit_code, 2);
}

TEST(Evidence, WhatCannotRunIsNotAPass) {
  const ProcessResult result = strata({"parity", "--op", "norm", "--arm", "avx512", "--cpu-isa", "avx2"});
  EXPECT_EQ(result.exit_code, 3) << result.out;
  EXPECT_NE(result.out.find("not run"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("this processor has no AVX-512"), std::string::npos) << result.out;
}

// Default arms carry a passing record made from the sources of this build (`strata parity --record`); what AMD GPUs can
// run, of the four simulated targets.
TEST(Evidence, EveryDefaultArmHasAFreshRecord) {
  const ProcessResult result = strata({"evidence", "--records", STRATA_SOURCE_DIR "/records", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  int checked = 0;
  for (const auto& row : nlohmann::json::parse(result.out)) {
    if (!row["default"].get<bool>()) continue;
    const auto device_class = row["class"].get<std::string>();
    const bool simulated = device_class.starts_with("sim-");
    EXPECT_EQ(row["state"], simulated ? "interpreted" : "verified") << row.dump();
    ++checked;
  }
  EXPECT_GT(checked, 0);
}

TEST(Bench, CeilingsAreMeasured) {
  const ProcessResult result = strata({"bench", "--op", "ceilings", "-o", "json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto ceilings = nlohmann::json::parse(result.out)["ceilings"];
  ASSERT_GE(ceilings.size(), 3u);
  for (const auto& one : ceilings)
    EXPECT_GT(one.contains("bytes_per_s") ? one["bytes_per_s"].get<double>() : one["operations_per_s"].get<double>(),
              1e8)
        << one.dump();
}

TEST(Bench, ArmsSideBySideInEveryFormat) {
  const std::vector<std::string> call{"bench", "--op", "norm", "--shape", "[1, 1, 2560]", "--samples", "1", "-o"};
  for (const char* format : {"table", "json", "csv", "md"}) {
    std::vector<std::string> arguments = call;
    arguments.push_back(format);
    const ProcessResult result = strata(arguments);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_NE(result.out.find("portable"), std::string::npos) << result.out;
    if (std::string(format) != "json") continue;
    for (const auto& row : nlohmann::json::parse(result.out)["results"]) {
      if (row.contains("refused")) continue;
      EXPECT_GT(row["median_s"].get<double>(), 0);
      EXPECT_GT(row["share"].get<double>(), 0);
    }
  }
  EXPECT_EQ(strata({"bench", "--op", "norn"}).exit_code, 2);
  // An arm that cannot run here was not measured.
  EXPECT_EQ(strata({"bench", "--op", "norm", "--arm", "avx2", "--cpu-isa", "portable", "--samples", "1"}).exit_code, 3);
}

}  // namespace
}  // namespace strata::test
