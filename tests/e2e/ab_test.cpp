// strata ab from outside: trials, records and their replay.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/process.h"
#include "support/test_files.h"
#include "support/xml_check.h"

namespace strata::test {
namespace {

const std::string kModel = STRATA_SOURCE_DIR "/models/strata-mini-q8_0.gguf";

std::vector<std::string> command(const std::vector<std::string>& arguments) {
  std::vector<std::string> all{STRATA_BINARY_DIR "/strata", "ab"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return all;
}

ProcessResult ab(const std::vector<std::string>& arguments) { return run(command(arguments)); }

// Seconds of a trial, with a gate that only a machine that stands still for one side could miss.
std::vector<std::string> short_trial(const std::vector<std::string>& more) {
  std::vector<std::string> arguments{"-m", kModel,  "--lengths", "16,40", "--pairs",
                                     "3",  "--gen", "4",         "--b",   "threads=1"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::string contents(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

void expect_replay(const std::string& path, int code, const std::string& says) {
  const ProcessResult result = ab({"--replay", path});
  EXPECT_EQ(result.exit_code, code) << result.out << result.err;
  EXPECT_TRUE(contains(result.out + result.err, says)) << result.out << result.err;
}

TEST(Ab, ATrialIsRecordedDrawnAndReplayed) {
  const TempFolder folder;
  const std::string plot = folder.file("plot.svg");
  const auto arguments = short_trial({"--gate", "prefill>=-99%,holdout decode@40>=-99%", "--name", "trial", "--records",
                                      folder.file(""), "--plot", plot});
  const ProcessResult result = ab(arguments);
  ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
  for (const char* part : {"B: threads=1", "prefill@40", "decode@16", "outputs@40: the same bits", "verdict: PROMOTE"})
    EXPECT_TRUE(contains(result.out, part)) << part << "\n" << result.out;

  const std::string path = folder.file("ab/trial.json"), log_path = folder.file("ab/trial.log");
  const auto document = nlohmann::ordered_json::parse(contents(path));
  EXPECT_EQ(document["cells"].size(), 48u);
  EXPECT_EQ(document["verdict"], "PROMOTE");
  for (const char* fact : {"binary_hash", "device", "compiler", "program", "began", "ended"})
    EXPECT_FALSE(document["facts"][fact].get<std::string>().empty()) << fact;
  EXPECT_TRUE(contains(contents(log_path), "plan " + document["plan_hash"].get<std::string>()));
  XmlCheck::elements(contents(plot));

  const ProcessResult again = ab({"--replay", path});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(again.out, result.out + "the recorded verdict agrees\n");
  EXPECT_EQ(nlohmann::ordered_json::parse(ab({"--replay", path, "--json"}).out), document);

  const ProcessResult twice = ab(arguments);
  EXPECT_EQ(twice.exit_code, 2);
  EXPECT_TRUE(contains(twice.err, "a trial is not repeated until it passes")) << twice.err;

  auto changed = document;
  changed["plan"]["gates"][0] = "prefill>=-50%";
  expect_replay(folder.write("gates.json", changed.dump()), 1, "the plan was changed after the trial began");
  changed = document;
  changed["verdict"] = "REJECT";
  expect_replay(folder.write("verdict.json", changed.dump()), 1, "the cells give PROMOTE, recorded is REJECT");
  changed = document;
  changed["schema"] = 99;
  expect_replay(folder.write("schema.json", changed.dump()), 1, "is of schema version 99");
  changed = document;
  changed["cells"][5]["seconds"] = 1e-3;
  folder.write("cells.log", contents(log_path));
  expect_replay(folder.write("cells.json", changed.dump()), 1, "the raw log and the record differ at cell 5");
  changed["cells"].erase(changed["cells"].end() - 1);
  changed["verdict"] = "INCOMPLETE";
  expect_replay(folder.write("missing.json", changed.dump()), 3, "1 of 24 ratios are missing");
}

TEST(Ab, EqualSidesAreRefusedOrFindNoGain) {
  const std::vector<std::string> equal{"-m", kModel,  "--lengths", "24",     "--pairs",
                                       "3",  "--gen", "4",         "--gate", "prefill>=+200%"};
  const ProcessResult refused = ab(equal);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(contains(refused.err, "the two sides do not differ")) << refused.err;
  std::vector<std::string> allowed = equal;
  allowed.push_back("--aa");
  const ProcessResult result = ab(allowed);
  EXPECT_TRUE(result.exit_code == 4 || result.exit_code == 5) << result.out << result.err;
}

TEST(Ab, AnArmThatDoesNotRunVoidsTheTrial) {
  const ProcessResult result = ab({"-m", kModel, "--lengths", "16", "--pairs", "3", "--gen", "2", "--b",
                                   "arm.matmul=warp", "--gate", "prefill>=+1%", "--json"});
  EXPECT_EQ(result.exit_code, 3) << result.err;
  const auto document = nlohmann::json::parse(result.out);
  EXPECT_EQ(document["verdict"], "VOID");
  EXPECT_TRUE(contains(document["reasons"][0], "the requested arm of matmul never ran"));
}

TEST(Ab, WrongUsageIsRefusedBeforeAModelIsRead) {
  const std::string missing = "/nonexistent/model.gguf";
  for (const auto& [more, says] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{}, "a trial without gates decides nothing"},
           {{"--gate", "prefill>5%"}, "expected >="},
           {{"--gate", "prefill@2k>=5%"}, "its length is none of those measured (16)"},
           {{"--gate", "prefill>=5%", "--pairs", "1"}, "needs 6"},
           {{"--gate", "prefill>=5%", "--b", "temp=1"}, "does not change how a model runs"},
           {{"--gate", "prefill>=5%", "--b", "thread=1"}, "did you mean threads?"},
           {{"--gate", "prefill>=5%", "--b", "arm.matmol=avx2"}, "did you mean arm.matmul?"},
           {{"--gate", "prefill>=5%", "--b", "threads=many"}, "many"},
           {{"--gate", "prefill>=5%", "--b", "threads"}, "setting=value"},
           {{"--gate", "prefill>=5%", "--b", "ubatch-size=8,ubatch_size=9"}, "stands twice"},
           {{"--gate", "prefill>=5%", "--b", "threads=0"}, "do not differ"},
           {{"--gate", "prefill>=5%", "--name", "../x"}, "is no name for a record"}}) {
    std::vector<std::string> arguments{"-m", missing, "--lengths", "16"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    if (more.size() < 3 || more[2] != "--b") arguments.insert(arguments.end(), {"--b", "threads=1"});
    const ProcessResult result = ab(arguments);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_TRUE(contains(result.err, says)) << says << "\n" << result.err;
  }
  expect_replay("/nonexistent.json", 1, "/nonexistent.json");
}

TEST(Ab, CtrlCKeepsWhatWasMeasured) {
  const TempFolder folder;
  const std::string log = folder.file("ab/long.log"), record = folder.file("ab/long.json");
  Process process(command({"-m", kModel, "--lengths", "16", "--pairs", "500", "--gen", "4", "--b", "threads=1",
                           "--gate", "prefill>=-99%", "--name", "long", "--records", folder.file("")}));
  for (int i = 0; i < 3000 && !contains(contents(log), "run 3 "); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(nlohmann::json::parse(contents(record))["verdict"], "INCOMPLETE") << "the plan is on disk from the start";
  process.send(SIGINT);
  const ProcessResult result = process.wait();
  EXPECT_EQ(result.exit_code, 130) << result.err;
  EXPECT_TRUE(contains(result.err, "kept in")) << result.err;
  EXPECT_GE(nlohmann::json::parse(contents(record))["cells"].size(), 6u);
  expect_replay(record, 3, "ratios are missing: interrupted");
}

}  // namespace
}  // namespace strata::test
