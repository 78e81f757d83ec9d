// strata profile, --profile, --trace and verify.profile from outside, on the default model.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "support/process.h"
#include "support/test_files.h"
#include "support/trace_check.h"

namespace strata::test {
namespace {

const std::vector<std::string> kRun{
    "-m", STRATA_SOURCE_DIR "/models/strata-mini-q8_0.gguf", "-p", "The file system", "-n", "6"};

ProcessResult strata(std::vector<std::string> arguments, const std::vector<std::string>& environment = {}) {
  arguments.insert(arguments.begin(), STRATA_BINARY_DIR "/strata");
  arguments.insert(arguments.begin() + 2, kRun.begin(), kRun.end());
  return run(arguments, environment);
}

std::string contents(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// What every measured stage owes: nothing missing, the parts within the whole, and the gap is what is left.
void expect_sums(const nlohmann::json& profile) {
  for (const nlohmann::json& stage : profile.at("stages")) {
    SCOPED_TRACE(stage.at("stage").get<std::string>());
    double sum = 0;
    for (const nlohmann::json& part : stage.at("parts")) {
      sum += part.at("ms").get<double>();
      EXPECT_GE(part.at("share").get<double>(), 0);
      EXPECT_LE(part.at("share").get<double>(), 1);
    }
    const double whole = stage.at("whole_ms"), gap = stage.at("gap_ms");
    EXPECT_GT(whole, 0);
    EXPECT_GE(gap, 0);
    const double rounding = 1e-9 * whole;  // of decimal doubles
    EXPECT_NEAR(sum, stage.at("sum_ms").get<double>(), rounding);
    EXPECT_NEAR(sum + gap, whole, rounding);
  }
}

const nlohmann::json& stage_of(const nlohmann::json& profile, const std::string& name) {
  static const nlohmann::json kNone;
  for (const nlohmann::json& stage : profile.at("stages"))
    if (stage.at("stage") == name) return stage;
  ADD_FAILURE() << "no stage " << name;
  return kNone;
}

// Behind random contents: they count as a prompt that was kept, and decode is measured at that depth.
TEST(Profile, Depth) {
  const ProcessResult plain = strata({"profile", "--json"});
  const ProcessResult deep = strata({"profile", "--json", "--depth", "5000"});
  ASSERT_EQ(deep.exit_code, 0) << deep.err;
  const nlohmann::json document = nlohmann::json::parse(deep.out), short_run = nlohmann::json::parse(plain.out);
  EXPECT_EQ(document.at("cached_n"), 5000);
  EXPECT_EQ(document.at("prompt_n"), 5000 + short_run.at("prompt_n").get<int64_t>());
  EXPECT_EQ(document.at("predicted_n"), 6);
  EXPECT_EQ(stage_of(document.at("profile"), "decode").at("tokens"), 5);
  EXPECT_EQ(stage_of(document.at("profile"), "prompt").at("tokens"), short_run.at("prompt_n"));
  const auto program = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), STRATA_BINARY_DIR "/strata");
    return run(arguments);
  };
  const std::string model = kRun[1];
  EXPECT_EQ(program({"profile", "-m", model, "--depth", "100", "-n", "2"}).exit_code, 0);  // no prompt is needed
  EXPECT_EQ(program({"profile", "-m", model, "--depth", "100", "-n", "2", "-c", "50"}).exit_code, 1);
  EXPECT_EQ(program({"profile", "-m", model, "--depth", "100", "-p", "x", "--chat"}).exit_code, 2);
  EXPECT_EQ(program({"profile", "-m", model, "--depth", "16777216", "-p", "x"}).exit_code, 2);
  EXPECT_EQ(program({"generate", "-m", model, "--depth", "100", "-p", "x"}).exit_code, 2);
}

TEST(Profile, PartsSumToTheWhole) {
  const ProcessResult result = strata({"profile", "--json", "-ub", "2"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json document = nlohmann::json::parse(result.out);
  const nlohmann::json& profile = document.at("profile");
  expect_sums(profile);
  const nlohmann::json& prompt = stage_of(profile, "prompt");
  const auto prompt_tokens = document.at("prompt_n").get<int64_t>();
  EXPECT_EQ(prompt.at("tokens"), prompt_tokens);
  EXPECT_EQ(prompt.at("calls"), (prompt_tokens + 1) / 2);
  const nlohmann::json& decode = stage_of(profile, "decode");
  EXPECT_EQ(decode.at("tokens"), 5);  // the first token comes from the logits of the prompt
  EXPECT_EQ(decode.at("calls"), 6);
  EXPECT_EQ(stage_of(profile, "load").at("calls"), 1);

  std::set<std::string> operators;
  for (const nlohmann::json& part : decode.at("parts")) operators.insert(part.at("name"));
  for (const auto& [op, arm] : document.at("arms").items()) EXPECT_TRUE(operators.contains(op)) << op;
  EXPECT_TRUE(operators.contains("sample"));
  EXPECT_EQ(profile.at("still_open"), 0);
  EXPECT_EQ(profile.at("out_of_order"), 0);
  // The engine's own clock reads the same stage.
  EXPECT_LE(prompt.at("whole_ms").get<double>(), document.at("prompt_ms").get<double>() + 0.001);
}

TEST(Profile, TablesGoToStandardOutput) {
  const ProcessResult result = strata({"profile"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (const char* part : {"run\n", "\nload: 1 call\n", "\nprompt: 1 call, ", " tokens, ", "ms per token",
                           "\ndecode: 6 calls, 5 tokens", "  matmul ", "  sum of parts ", "  whole ", "  gap "})
    EXPECT_TRUE(contains(result.out, part)) << part << "\n" << result.out;
  EXPECT_TRUE(result.out.starts_with("run\n")) << result.out;  // and not the text
  EXPECT_TRUE(contains(result.err, "output: 6 tokens")) << result.err;
}

TEST(Profile, GenerateKeepsItsTextAndPrintsTheTablesAfterTheSummary) {
  const ProcessResult plain = strata({"generate"}), profiled = strata({"generate", "--profile"});
  EXPECT_EQ(profiled.out, plain.out);
  EXPECT_FALSE(contains(plain.err, "sum of parts"));
  EXPECT_LT(profiled.err.find("peak memory"), profiled.err.find("sum of parts"));
  EXPECT_NE(profiled.err.find("sum of parts"), std::string::npos) << profiled.err;
  const auto plain_json = nlohmann::json::parse(strata({"generate", "--json"}).out);
  EXPECT_FALSE(plain_json.contains("profile"));
  const auto json = nlohmann::json::parse(strata({"generate", "--json", "--profile"}).out);
  EXPECT_EQ(json.at("tokens"), plain_json.at("tokens"));
  expect_sums(json.at("profile"));
}

TEST(Profile, TracesNestAndNameTheirStages) {
  const TempFolder folder;
  const std::string path = folder.file("trace.json");
  const ProcessResult result = strata({"generate", "--trace", path});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_FALSE(contains(result.err, "sum of parts")) << result.err;
  const auto lines = check_trace(contents(path));
  ASSERT_EQ(lines.size(), 1u);
  std::map<std::string, int> stages;
  for (const TraceBar& bar : lines.at("host")) {
    if (bar.kind == "stage") ++stages[bar.name];
    if (bar.name == "run") continue;
    const std::string stage = bar.kind == "operator" ? bar.args.at("stage").get<std::string>() : "run";
    EXPECT_EQ(bar.parent, stage) << bar.name;
  }
  EXPECT_EQ(stages, (std::map<std::string, int>{{"run", 1}, {"load", 1}, {"prompt", 1}, {"decode", 6}}));
}

TEST(Profile, AFullTraceSaysSo) {
  const TempFolder folder;
  const std::string path = folder.file("trace.json");
  const ProcessResult result = strata({"profile", "--trace", path, "--trace-events", "20", "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(contains(result.err, "the limit of 20 was reached")) << result.err;
  const auto document = nlohmann::json::parse(result.out);
  const auto dropped = document.at("profile").at("trace").at("dropped").get<int64_t>();
  EXPECT_GT(dropped, 1000);
  EXPECT_EQ(nlohmann::json::parse(contents(path)).at("otherData").at("dropped_events"), dropped);
  check_trace(contents(path));
}

TEST(Profile, ATraceThatCannotBeWrittenIsAnErrorBeforeTheRun) {
  const ProcessResult result = strata({"generate", "--trace", "/nonexistent/trace.json"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(contains(result.err, "/nonexistent/trace.json")) << result.err;
}

TEST(Profile, TheShortNameAsksForTheVerifyWindow) {
  const ProcessResult result = strata({"generate"}, {"STRATA_VERIFY_PROFILE=1"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(contains(result.err, "verify window: none ran\n")) << result.err;
  EXPECT_FALSE(contains(result.err, "decode:")) << result.err;
}

TEST(Profile, ChatPrintsItsProfileAtTheEnd) {
  const ProcessResult result = run({STRATA_BINARY_DIR "/strata", "chat", "-m", kRun[1], "--profile", "-n", "4"}, {},
                                   "What does ls do?\nAnd cat?\n/quit\n");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(contains(result.err, "\nprompt: 2 calls")) << result.err;
  EXPECT_FALSE(contains(result.out, "sum of parts"));
}

}  // namespace
}  // namespace strata::test
