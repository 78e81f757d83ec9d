// strata needle and strata rates from outside, with the default model.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/process.h"
#include "support/test_files.h"
#include "support/xml_check.h"

namespace strata::test {
namespace {

const std::string kModel = STRATA_SOURCE_DIR "/models/strata-mini-q8_0.gguf";

std::vector<std::string> call(const char* command, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {STRATA_BINARY_DIR "/strata", command});
  return arguments;
}
ProcessResult needle(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"-m", kModel});
  return run(call("needle", std::move(arguments)));
}
ProcessResult rates(const std::vector<std::string>& arguments) { return run(call("rates", arguments)); }

std::string contents(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}
bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(NeedleCommand, TheDefaultModelPasses) {
  const TempFolder folder;
  const std::string plot = folder.file("needle.svg");
  const ProcessResult result =
      needle({"--lengths", "256,512", "--depths", "0,50,100", "--draft", "mtp", "--plot", plot});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_TRUE(contains(result.out, "   50 % |      1/1      1/1\n")) << result.out;
  EXPECT_TRUE(contains(result.out, "PASS: 6 of 6 answers are right\n")) << result.out;
  EXPECT_TRUE(contains(result.err, "drafts held")) << result.err;
  XmlCheck::elements(contents(plot));
}

// Settings that never change a text never change an answer.
TEST(NeedleCommand, AnswersDoNotDependOnHowTheyAreComputed) {
  const auto cells = [](std::vector<std::string> more) {
    std::vector<std::string> arguments{"--lengths", "300", "--depths", "30", "--markers", "2", "-o", "json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProcessResult result = needle(arguments);
    EXPECT_LE(result.exit_code, 1) << result.err;
    return nlohmann::json::parse(result.out)["cells"];
  };
  const auto plain = cells({});
  EXPECT_EQ(plain[0]["asked"], 2);
  EXPECT_EQ(cells({"--draft", "lookup", "-ub", "37", "-t", "1", "--no-cache-prompt"}), plain);
  EXPECT_EQ(cells({"--draft", "mtp", "--kv-resident", "128"}), plain);
}

TEST(NeedleCommand, TheControlFails) {
  const ProcessResult result = needle({"--lengths", "128", "--depths", "50", "--control", "-o", "json"});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  const auto document = nlohmann::json::parse(result.out);
  EXPECT_EQ(document["verdict"], "FAIL");
  EXPECT_EQ(document["cells"][0]["passed"], 0);
  EXPECT_EQ(document["cells"][0]["wrong"][0]["expected"].size(), 1u);
  // The same texts without the control pass, and --pass 0 asks for nothing.
  EXPECT_EQ(needle({"--lengths", "128", "--depths", "50"}).exit_code, 0);
  EXPECT_EQ(needle({"--lengths", "128", "--depths", "50", "--control", "--pass", "0"}).exit_code, 0);
}

TEST(NeedleCommand, WhatCannotBeAskedIsOneError) {
  const std::vector<std::pair<std::vector<std::string>, const char*>> cases{
      {{"--lengths", "8K"}, "need 8224 positions, the model has 4096"},
      {{"--lengths", "20"}, "has no room for 1 key and the question"},
      {{"--lengths", "512", "-c", "256"}, "the context given has 256"},
      {{"--lengths", "x"}, "expected a length"},
      {{"--depths", "101"}, "out of range"},
      {{"--markers", "17"}, "1 to 16"},
      {{"--samples", "10000", "--depths", "0-100"}, "at most 1000000"},
  };
  for (const auto& [arguments, message] : cases) {
    const ProcessResult result = needle(arguments);
    EXPECT_EQ(result.exit_code, 2) << message << ": " << result.out << result.err;
    EXPECT_TRUE(contains(result.err, message)) << result.err;
    EXPECT_EQ(result.out, "");
  }
}

TEST(NeedleCommand, CtrlCKeepsTheAnswers) {
  Process process(call("needle", {"-m", kModel, "--lengths", "96", "--samples", "5000"}));
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  process.send(SIGINT);
  const ProcessResult result = process.wait();
  EXPECT_EQ(result.exit_code, 130) << result.err;
  EXPECT_TRUE(contains(result.err, "interrupted: ")) << result.err;
  EXPECT_TRUE(contains(result.out, "INCOMPLETE: ")) << result.out;
}

TEST(RatesCommand, RecordsLogsAndMergedTables) {
  const TempFolder folder;
  const auto record = [&](const std::string& name) { return folder.file("rates/" + name + ".json"); };
  const auto measured = [&](const std::string& name, std::vector<std::string> more) {
    std::vector<std::string> arguments{"-m", kModel,      "--lengths",     "32,64,8K", "-n",
                                       "8",  "--records", folder.file(""), "--name",   name};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return rates(arguments);
  };
  const ProcessResult one = measured("one", {});
  ASSERT_EQ(one.exit_code, 0) << one.err;
  EXPECT_TRUE(contains(one.out, "Output tokens/s, greedy, 8 tokens:\n")) << one.out;
  EXPECT_TRUE(contains(one.out, "- 8K: too long for the model, which has 4096 positions\n")) << one.out;
  const auto document = nlohmann::json::parse(contents(record("one")));
  EXPECT_EQ(document["cells"].size(), 3u);
  EXPECT_EQ(document["stopped"], "");
  for (const char* fact : {"binary_hash", "device", "program", "began", "ended", "arm.matmul"})
    EXPECT_FALSE(document["facts"][fact].get<std::string>().empty()) << fact;
  for (const char* length : {"32", "64", "8192"})
    EXPECT_TRUE(std::filesystem::exists(folder.file(std::string("rates/one.") + length + ".log")));

  const ProcessResult again = measured("one", {});
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_TRUE(contains(again.err, "there is a record of this name")) << again.err;

  ASSERT_EQ(measured("two", {"--draft", "mtp"}).exit_code, 0);
  const ProcessResult merged = rates({"--merge", record("one"), record("two")});
  EXPECT_EQ(merged.exit_code, 0) << merged.err;
  EXPECT_TRUE(contains(merged.out, "| qwen4exp 26.20 M Q8_0, draft mtp |")) << merged.out;
  EXPECT_EQ(nlohmann::json::parse(rates({"--merge", record("one"), "-o", "json"}).out)["rows"].size(), 1u);

  auto changed = document;
  changed["facts"]["program"] = "9.9.9";
  const std::string foreign = folder.write("foreign.json", changed.dump());
  const ProcessResult mixed = rates({"--merge", record("one"), foreign});
  EXPECT_EQ(mixed.exit_code, 2);
  EXPECT_TRUE(contains(mixed.err, "one and foreign cannot stand in one table: program is")) << mixed.err;

  changed = document;
  changed["cells"][0]["runs"][0]["prompt_seconds"] = 1e-3;
  std::ofstream(record("one")) << changed.dump();
  const ProcessResult better = rates({"--merge", record("one")});
  EXPECT_EQ(better.exit_code, 1);
  EXPECT_TRUE(contains(better.err, "the raw log and the record differ")) << better.err;
}

TEST(RatesCommand, NothingMeasuredIsNoSuccess) {
  const ProcessResult result = rates({"-m", kModel, "--lengths", "8K,1M"});
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_TRUE(contains(result.out, "|      - |      - |")) << result.out;
  EXPECT_EQ(rates({"--merge"}).exit_code, 2);
  EXPECT_EQ(rates({"a.json"}).exit_code, 2);
}

TEST(RatesCommand, CtrlCKeepsTheCells) {
  const TempFolder folder;
  Process process(
      call("rates", {"-m", kModel, "--lengths", "16,64", "-n", "300", "--records", folder.file(""), "--name", "cut"}));
  while (!std::filesystem::exists(folder.file("rates/cut.json")))
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  process.send(SIGINT);
  const ProcessResult result = process.wait();
  EXPECT_EQ(result.exit_code, 130) << result.err;
  EXPECT_TRUE(contains(result.err, "1 of 2 cells were measured and kept in")) << result.err;
  EXPECT_TRUE(contains(result.out, "- 64: interrupted")) << result.out;
  const auto document = nlohmann::json::parse(contents(folder.file("rates/cut.json")));
  EXPECT_EQ(document["stopped"], "interrupted");
  EXPECT_FALSE(document["cells"][0]["output_tokens_per_s"].is_null());
}

}  // namespace
}  // namespace strata::test
