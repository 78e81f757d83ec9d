// Rates: what is measured, what is a dash and why, and records that do not mix.
#include "measure/rates.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "measure/rates_record.h"

namespace strata {
namespace {

struct Loaded {
  Loaded()
      : engine({.model = STRATA_SOURCE_DIR "/models/strata-mini-q8_0.gguf",
                .micro_batch = 16,
                .rope = {},
                .forward = {},
                .caches = {},
                .arms = {}},
               log) {}
  Log log{LogLevel::Error};
  Engine engine;
};
Loaded& loaded() {
  static Loaded one;
  return one;
}

RatesPlan short_plan() {
  RatesPlan plan;
  plan.lengths = {24, 40};
  plan.generate = 5;
  plan.warm_up = false;
  return plan;
}

TEST(Rates, RatesFollowTheirDefinitions) {
  RatesPlan plan;
  plan.generate = 11;
  RatesCell cell{.length = 128, .prompt_tokens = 100, .runs = {}, .missing = {}};
  EXPECT_FALSE(prompt_rate(cell));
  EXPECT_FALSE(output_rate(cell, plan));
  const auto add = [&](double prompt, double output, int64_t tokens) {
    cell.runs.push_back(
        {.prompt_seconds = prompt, .output_seconds = output, .output_tokens = tokens, .output = {}, .flags = {}});
  };
  add(0.5, 2, 11), add(0.25, 1, 11), add(0.125, 4, 11);
  EXPECT_DOUBLE_EQ(*prompt_rate(cell), 400);      // the median of 200, 400, 800
  EXPECT_DOUBLE_EQ(*output_rate(cell, plan), 5);  // 10 tokens have a pass: the median of 5, 10, 2.5
  cell.runs.clear();
  add(0.5, 2, 10);  // the limit came first
  EXPECT_TRUE(prompt_rate(cell));
  EXPECT_FALSE(output_rate(cell, plan));
}

TEST(Rates, APromptThatFillsTheContextLeavesRoomForTheOutput) {
  EXPECT_EQ(rates_prompt(1024, 256, 4096), 1024);
  EXPECT_EQ(rates_prompt(3840, 256, 4096), 3840);
  EXPECT_EQ(rates_prompt(4096, 256, 4096), 3840);
  EXPECT_EQ(rates_prompt(4097, 256, 4096), std::nullopt);
  EXPECT_EQ(rates_prompt(100, 256, 256), std::nullopt);
}

TEST(Rates, EveryLengthIsACellAndDashesSayWhy) {
  RatesPlan plan = short_plan();
  plan.lengths = {24, 40, 8192};
  plan.repetitions = 2;
  std::vector<int64_t> over;
  std::vector<std::vector<int32_t>> outputs;
  RatesHooks hooks;
  hooks.cell = [&](const RatesCell& cell) { over.push_back(cell.length); };
  hooks.ran = [&](const RatesCell&, const std::vector<int32_t>& output) { outputs.push_back(output); };
  GenerateRequest drafts;
  drafts.draft = DraftKind::Mtp;
  const std::vector<RatesCell> cells = run_rates(loaded().engine, plan, drafts, {}, hooks);
  ASSERT_EQ(cells.size(), 3u);
  EXPECT_EQ(over, plan.lengths);
  ASSERT_EQ(outputs.size(), 4u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(cells[i].prompt_tokens, plan.lengths[i]);
    EXPECT_EQ(cells[i].missing, "");
    ASSERT_EQ(cells[i].runs.size(), 2u);
    EXPECT_EQ(cells[i].runs[0].output_tokens, 5);
    EXPECT_EQ(cells[i].runs[0].output, cells[i].runs[1].output);  // one-shot runs of the same tokens
    EXPECT_EQ(cells[i].runs[0].output, hash_hex(hash64(outputs[2 * i].data(), 5 * sizeof(int32_t))));
    EXPECT_GT(cells[i].runs[0].drafted, 0);
  }
  EXPECT_EQ(cells[2].missing, "too long for the model, which has 4096 positions");
  EXPECT_FALSE(cells[2].failed);
}

TEST(Rates, TheLimitEndsACellAndSparesLongerOnes) {
  RatesPlan plan = short_plan();
  plan.lengths = {512, 1024};
  plan.limit = 1e-4;  // over after the first 16 tokens
  const std::vector<RatesCell> cells = run_rates(loaded().engine, plan, {}, {});
  EXPECT_TRUE(cells[0].missing.starts_with("stopped after")) << cells[0].missing;
  EXPECT_FALSE(prompt_rate(cells[0]));
  EXPECT_EQ(cells[1].missing, "not tried: a prompt of 512 took longer than the limit");
}

TEST(Rates, AnInterruptionKeepsTheCellsBefore) {
  const RatesPlan plan = short_plan();
  std::atomic<bool> interrupted = false;
  RatesHooks hooks;
  hooks.interrupted = &interrupted;
  hooks.progress = [&](const RatesCell& cell, int64_t, const char*, int64_t, int64_t) {
    if (cell.length == 40) interrupted = true;
  };
  const std::vector<RatesCell> cells = run_rates(loaded().engine, plan, {}, {}, hooks);
  EXPECT_TRUE(output_rate(cells[0], plan));
  EXPECT_EQ(cells[1].missing, "interrupted");
}

TEST(Rates, AnErrorIsACellWithoutARate) {
  RatesPlan plan = short_plan();
  const std::vector<RatesCell> cells = run_rates(loaded().engine, plan, {}, {1 << 30});  // no such token
  for (const RatesCell& cell : cells) {
    EXPECT_TRUE(cell.failed);
    EXPECT_TRUE(cell.missing.starts_with("failed: ")) << cell.missing;
  }
}

RatesRecord record_of(const std::string& name) {
  RatesRecord record;
  record.name = name;
  record.plan = short_plan();
  record.prompt = "random tokens of seed 1";
  record.model = {{"file", "m.gguf"}, {"type", "llama 1.00 B Q8_0"}};
  record.facts = {{"program", "0.1.0"},
                  {"binary_hash", "0123456789abcdef"},
                  {"device", "a processor, AVX2"},
                  {"instruction_sets", "AVX2"},
                  {"threads", "2"},
                  {"began", "2026-11-30 01:02:03 UTC"}};
  RatesCell measured{.length = 24, .prompt_tokens = 24, .runs = {}, .missing = {}};
  measured.runs.push_back({.prompt_seconds = 0.1,
                           .output_seconds = 0.5,
                           .output_tokens = 5,
                           .drafted = 4,
                           .accepted = 2,
                           .output = "00112233",
                           .flags = {"a slower clock"}});
  record.cells = {measured, {.length = 40, .runs = {}, .missing = "too long | for the model"}};
  return record;
}

TEST(RatesRecord, ReadsBackWhatItWrote) {
  const RatesRecord record = record_of("one");
  const std::string text = rates_record_text(record);
  EXPECT_EQ(rates_record_text(parse_rates_record(text, "x", "one")), text);
  const auto document = nlohmann::json::parse(text);
  EXPECT_EQ(document["schema"], 1);
  EXPECT_DOUBLE_EQ(document["cells"][0]["prompt_tokens_per_s"], 240);
  EXPECT_DOUBLE_EQ(document["cells"][0]["output_tokens_per_s"], 8);
  EXPECT_TRUE(document["cells"][1]["prompt_tokens_per_s"].is_null());
  EXPECT_EQ(document["cells"][1]["log"], "one.40.log");
}

TEST(RatesRecord, RefusesWhatCannotBe) {
  const auto document = nlohmann::json::parse(rates_record_text(record_of("one")));
  const auto refused = [](const std::string& text, const char* message) {
    try {
      parse_rates_record(text, "file");
      ADD_FAILURE() << message;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Format);
      EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
    }
  };
  refused("", "is no record of rates");
  refused("[]", "is no record of rates");
  refused(std::string(100000, '['), "file");
  const auto changed = [&](const char* pointer, nlohmann::json value) {
    auto copy = document;
    copy[nlohmann::json::json_pointer(pointer)] = std::move(value);
    return copy.dump();
  };
  refused(changed("/schema", 2), "is of schema version 2");
  refused(changed("/kind", "strata ab"), "is no record of rates");
  refused(changed("/cells/0/length", 25), "other cells than its plan has lengths");
  refused(changed("/cells/0/prompt_tokens", 25), "longer than its column");
  refused(changed("/cells/0/runs/0/prompt_seconds", -1), "in the place of a time");
  refused(changed("/cells/0/runs/0/output_tokens", 1.5), "in the place of a count");
  refused(changed("/cells/0/runs", nlohmann::json::array()), "has no rate at 24 and no reason why");
  refused(changed("/cells/1/missing", ""), "has no rate at 40 and no reason why");
  refused(changed("/plan/lengths", {40, 24}), "");
  auto killed = document;
  killed["cells"].erase(1);
  refused(killed.dump(), "other cells than its plan has lengths");
  killed["stopped"] = "killed";
  EXPECT_EQ(parse_rates_record(killed.dump(), "file").cells.size(), 1u);
}

TEST(RatesRecord, RawLogsHoldTheSameRuns) {
  const RatesRecord record = record_of("one");
  const RatesCell &measured = record.cells[0], &missing = record.cells[1];
  const std::string log = "a head\n" + rates_run_line(measured, 0) + "\ntokens: 1,2\n";
  check_rates_log(measured, log, "log");
  check_rates_log(missing, rates_missing_line(missing) + "\n", "log");
  EXPECT_THROW(check_rates_log(measured, "a head\n", "log"), Error);
  EXPECT_THROW(check_rates_log(missing, "a head\n", "log"), Error);
  EXPECT_THROW(check_rates_log(missing, rates_missing_line(missing) + "?\n", "log"), Error);
  RatesCell faster = measured;
  faster.runs[0].prompt_seconds = 0.09;
  EXPECT_THROW(check_rates_log(faster, log, "log"), Error);
}

TEST(RatesTable, JoinsRecordsOfOneBuildAndDevice) {
  RatesRecord other = record_of("two");
  other.settings = {{"draft", "mtp"}};
  other.plan.lengths = {24, 80};
  other.cells[1].length = 80;
  const std::string text = rates_markdown({record_of("one"), other});
  EXPECT_NE(text.find("| model                        |     24 |     40 |     80 |\n"), std::string::npos) << text;
  EXPECT_NE(text.find("| llama 1.00 B Q8_0            |    240 |      - |      - |\n"), std::string::npos) << text;
  EXPECT_NE(text.find("| llama 1.00 B Q8_0, draft mtp |    8.0 |      - |      - |\n"), std::string::npos) << text;
  EXPECT_NE(text.find("- llama 1.00 B Q8_0, 40: too long \\| for the model\n"), std::string::npos) << text;
  EXPECT_NE(text.find("- llama 1.00 B Q8_0, 80: not part of this record\n"), std::string::npos) << text;
  EXPECT_NE(text.find("24: 1 of 1 runs disturbed: a slower clock"), std::string::npos) << text;
  EXPECT_NE(text.find("Prompt rate: tokens of the prompt over the seconds"), std::string::npos);
  EXPECT_NE(text.find("Output rate: 4 tokens over the seconds"), std::string::npos);
  EXPECT_NE(text.find("Build 0.1.0 (binary 0123456789abcdef), a processor, AVX2, 2 threads; 2026-11-30"),
            std::string::npos)
      << text;
  const auto document = nlohmann::json::parse(rates_json({record_of("one"), other}));
  EXPECT_EQ(document["lengths"], nlohmann::json({24, 40, 80}));
  EXPECT_TRUE(document["rows"][0]["prompt_tokens_per_s"][2].is_null());
  // Rows that only their records tell apart have the records' names.
  const std::string twins = rates_markdown({record_of("one"), record_of("two")});
  EXPECT_NE(twins.find("| llama 1.00 B Q8_0 (one) |"), std::string::npos) << twins;
}

TEST(RatesTable, DoesNotMix) {
  const auto refused = [](RatesRecord other, const std::string& message) {
    try {
      check_same_table({record_of("one"), other});
      ADD_FAILURE() << message;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::Usage);
      EXPECT_NE(std::string(error.what()).find("one and two cannot stand in one table: " + message), std::string::npos)
          << error.what();
    }
  };
  for (const char* fact : {"program", "binary_hash", "device", "instruction_sets"}) {
    RatesRecord other = record_of("two");
    for (auto& [name, value] : other.facts)
      if (name == fact) value = "other";
    refused(other, fact);
  }
  RatesRecord other = record_of("two");
  other.plan.generate = 256;
  refused(other, "generated tokens is \"5\" in the first and \"256\" in the second");
  other = record_of("two");
  other.prompt = "a text";
  refused(other, "prompt is");
  EXPECT_THROW(check_same_table({}), Error);
}

}  // namespace
}  // namespace strata
