// strata parity and strata evidence from outside.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/process.h"
#include "support/test_files.h"

namespace strata::test {
namespace {

ProcessResult strata(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), STRATA_BINARY_DIR "/strata");
  return run(arguments);
}

TEST(Evidence, ParityPassesAndRecords) {
  const TempFolder folder;
  const std::string records = folder.file("records");
  EXPECT_EQ(
      nlohmann::json::parse(strata({"evidence", "--op", "matmul", "--records", records, "--json"}).out)[0]["state"],
      "never run");
  const ProcessResult result = strata({"parity", "--op", "matmul", "--record", "--records", records, "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
  const nlohmann::json row = nlohmann::json::parse(result.out)[0];
  EXPECT_EQ(row["verdict"], "pass");
  EXPECT_EQ(row["mutants"], row["mutants_caught"]);
  EXPECT_GT(row["controls"].get<int>(), 0);
  EXPECT_EQ(
      nlohmann::json::parse(strata({"evidence", "--op", "matmul", "--records", records, "--json"}).out)[0]["state"],
      "verified");
}

TEST(Evidence, UnknownNamesAreWrongUsage) {
  const ProcessResult op = strata({"parity", "--op", "matmol"});
  EXPECT_EQ(op.exit_code, 2);
  EXPECT_NE(op.err.find("did you mean matmul"), std::string::npos) << op.err;
  EXPECT_EQ(strata({"parity", "--op", "matmul", "--only-arm", "warp"}).exit_code, 2);
}

}  // namespace
}  // namespace strata::test
