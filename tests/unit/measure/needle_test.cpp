// Needle tests: prompts of an exact length, keys where they should be, and a judge that can say no.
#include "measure/needle.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "runtime/chat.h"
#include "support/xml_check.h"

namespace strata {
namespace {

const std::string kModel = STRATA_SOURCE_DIR "/models/strata-mini-q8_0.gguf";

struct Loaded {
  Loaded() : engine({.model = kModel, .rope = {}, .forward = {}, .caches = {}, .arms = {}}, log) {}
  Log log{LogLevel::Error};
  Engine engine;
  text::ChatTemplate chat{chat_template_of(engine)};
};
Loaded& loaded() {
  static Loaded one;
  return one;
}

// Per cent of the filler's characters that stand before `key`, markers and question left out.
double depth_in(const std::string& text, const std::string& key) {
  const size_t end = text.rfind("\n\n");
  size_t before = 0, all = 0;
  bool seen = false;
  for (size_t at = 0; at < end;) {
    const size_t stop = std::min(text.find('\n', at), end);
    const std::string line = text.substr(at, stop - at);
    if (line.find(key) != std::string::npos) seen = true;
    if (line.find("pass key") == std::string::npos) {
      all += line.size();
      if (!seen) before += line.size();
    }
    at = stop + 1;
  }
  return 100.0 * static_cast<double>(before) / static_cast<double>(all);
}

TEST(NeedleText, PromptsHaveExactlyTheLengthAskedFor) {
  const text::ChatTemplate* const forms[] = {&loaded().chat, nullptr};
  for (const text::ChatTemplate* form : forms) {
    NeedleText text(loaded().engine.tokenizer(), form);
    for (int64_t length = 60; length <= 300; ++length)
      for (const int64_t depth : {int64_t{0}, length % 101, int64_t{100}})
        EXPECT_EQ(text.prompt({.length = length, .depth = depth, .sample = length % 7}).tokens.size(),
                  static_cast<size_t>(length));
    EXPECT_EQ(text.prompt({.length = 20000, .depth = 37, .markers = 16, .asked = 3}).tokens.size(), 20000u);
  }
}

TEST(NeedleText, TokensAreThoseOfTheText) {
  NeedleText text(loaded().engine.tokenizer(), nullptr);
  const NeedlePrompt prompt = text.prompt({.length = 400, .depth = 50});
  EXPECT_EQ(prompt.tokens, loaded().engine.tokenizer().encode(prompt.text));
  EXPECT_TRUE(prompt.text.ends_with("\n\nWhat is the pass key? The pass key is"));
}

// A marker stands at the end of the nearest sentence, up to 35 of about 3,500 characters away, and depths are counted
// in tokens: 3 %.
TEST(NeedleText, KeysStandAtTheirDepths) {
  NeedleText text(loaded().engine.tokenizer(), &loaded().chat);
  for (const int64_t depth : {0, 10, 25, 50, 75, 99, 100}) {
    const NeedlePrompt prompt = text.prompt({.length = 1000, .depth = depth});
    EXPECT_NEAR(depth_in(prompt.text, prompt.keys[0]), static_cast<double>(depth), 3);
  }
  const NeedlePrompt several = text.prompt({.length = 1200, .depth = 50, .markers = 4, .asked = 1});
  const double wanted[] = {25, 50, 75, 0};  // the others follow the asked one at equal distances, in a circle
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(depth_in(several.text, several.keys[i]), wanted[i], 3) << i;
  EXPECT_EQ(several.expected, std::vector<std::string>{several.keys[1]});
  EXPECT_TRUE(several.text.ends_with("What is the green pass key?"));
}

TEST(NeedleText, ACaseIsAlwaysTheSamePrompt) {
  NeedleText first(loaded().engine.tokenizer(), &loaded().chat), second(loaded().engine.tokenizer(), &loaded().chat);
  first.prompt({.length = 200, .depth = 0});
  const NeedleCase which{.length = 500, .depth = 75, .sample = 2, .seed = 9};
  EXPECT_EQ(first.prompt(which).tokens, second.prompt(which).tokens);
  std::set<std::string> texts, keys;
  for (const NeedleCase& other : {which, NeedleCase{.length = 501, .depth = 75, .sample = 2, .seed = 9},
                                  NeedleCase{.length = 500, .depth = 50, .sample = 2, .seed = 9},
                                  NeedleCase{.length = 500, .depth = 75, .sample = 3, .seed = 9},
                                  NeedleCase{.length = 500, .depth = 75, .sample = 2, .seed = 10}}) {
    texts.insert(first.prompt(other).text);
    keys.insert(needle_keys(other)[0]);
  }
  EXPECT_EQ(texts.size(), 5u);
  EXPECT_EQ(keys.size(), 5u);
}

TEST(NeedleText, FillerGivesNothingAway) {
  EXPECT_EQ(needle_filler().size(), 40u);
  for (const std::string sentence : needle_filler()) {
    EXPECT_EQ(sentence.find_first_of("0123456789"), std::string::npos) << sentence;
    EXPECT_EQ(sentence.find("key"), std::string::npos) << sentence;
    EXPECT_TRUE(sentence.ends_with(".")) << sentence;
  }
  const std::vector<std::string> keys = needle_keys({.length = 100, .markers = kMaxMarkers});
  EXPECT_EQ(std::set<std::string>(keys.begin(), keys.end()).size(), 16u);
  for (const std::string& key : keys) EXPECT_EQ(key.size(), 5u);
}

TEST(NeedleText, NoRoomIsAnError) {
  NeedleText text(loaded().engine.tokenizer(), &loaded().chat);
  try {
    text.prompt({.length = 30});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Usage);
    EXPECT_NE(std::string(error.what()).find("a prompt of 30 tokens has no room for 1 key and the question"),
              std::string::npos)
        << error.what();
  }
}

TEST(NeedleJudge, AnswersAreRightOrWrong) {
  const auto found = [](const char* answer) { return needle_found(answer, {"40731"}); };
  EXPECT_TRUE(found("The pass key is 40731."));
  EXPECT_TRUE(found("**40731**. Remember: 40731"));
  EXPECT_TRUE(found("1. the key of step 2 is 40731"));  // short numbers are no keys
  for (const char* wrong : {"", "The pass key is 4073.", "The pass key is 407310.", "140731", "40,731", "4 0 7 3 1",
                            "40731 or 40732", "The pass key is 18370.", "I do not know."})
    EXPECT_FALSE(found(wrong)) << wrong;
  EXPECT_TRUE(needle_found("red 11111, green 22222", {"11111", "22222"}));
  EXPECT_FALSE(needle_found("green 22222, red 11111", {"11111", "22222"}));
  EXPECT_FALSE(needle_found("red 11111", {"11111", "22222"}));
}

NeedlePlan short_plan() {
  NeedlePlan plan;
  plan.lengths = {70, 100};
  plan.depths = {0, 100};
  return plan;
}

NeedleResult run(const NeedlePlan& plan, const NeedleHooks& hooks = {}, DraftKind draft = DraftKind::None) {
  NeedleText text(loaded().engine.tokenizer(), &loaded().chat);
  GenerateRequest generation;
  generation.draft = draft;
  generation.sampler.temperature = 5;  // answers are greedy all the same
  return run_needle(loaded().engine, plan, text, generation, hooks);
}

TEST(Needle, TheDefaultModelFindsItsKey) {
  const NeedlePlan plan = short_plan();
  const NeedleResult result = run(plan, {}, DraftKind::Mtp);
  EXPECT_EQ(needle_verdict(result, plan), NeedleVerdict::Pass) << needle_table(result, plan);
  EXPECT_EQ(result.prompts, 4);
  EXPECT_EQ(result.prompt_tokens, 2 * (70 + 100));
  EXPECT_GT(result.drafted, 0);
  test::XmlCheck::elements(needle_svg(result, plan, "a <model>", "& more"));
}

TEST(Needle, TheControlFailsEverywhere) {
  NeedlePlan plan = short_plan();
  plan.control = true;
  const NeedleResult result = run(plan);
  EXPECT_EQ(needle_verdict(result, plan), NeedleVerdict::Fail);
  for (const NeedleCell& cell : result.cells) {
    EXPECT_EQ(cell.passed, 0);
    ASSERT_EQ(cell.wrong.size(), 1u);
    EXPECT_NE(cell.wrong[0].text.find("The pass key is"), std::string::npos);  // an answer, and not the expected one
  }
  plan.pass = 0;
  EXPECT_EQ(needle_verdict(result, plan), NeedleVerdict::Pass);
}

TEST(Needle, SeveralKeysAreAskedOneByOneOrTogether) {
  NeedlePlan plan = short_plan();
  plan.lengths = {120};
  plan.markers = 3;
  plan.answer = 2;
  std::set<int64_t> asked;
  NeedleHooks hooks;
  hooks.answered = [&](const NeedleCase& which, const std::string&, bool) { asked.insert(which.asked); };
  EXPECT_EQ(run(plan, hooks).prompts, 2 * 3);
  EXPECT_EQ(asked.size(), 3u);
  plan.ask_all = true;
  EXPECT_EQ(run(plan).prompts, 2);
  EXPECT_EQ(plan.answer_tokens(), 2);
  plan.answer = 0;
  EXPECT_EQ(plan.answer_tokens(), 32 + 2 * 16);
}

TEST(Needle, AnInterruptionKeepsTheAnswersSoFar) {
  const NeedlePlan plan = short_plan();
  std::atomic<bool> interrupted = false;
  NeedleHooks hooks;
  hooks.interrupted = &interrupted;
  hooks.answered = [&](const NeedleCase&, const std::string&, bool) { interrupted = true; };
  const NeedleResult result = run(plan, hooks);
  EXPECT_TRUE(result.interrupted);
  EXPECT_EQ(result.prompts, 1);
  EXPECT_EQ(needle_verdict(result, plan), NeedleVerdict::Incomplete);
  const std::string table = needle_table(result, plan);
  EXPECT_NE(table.find("    0 % |      1/1        -\n  100 % |        -        -\n"), std::string::npos) << table;
  const auto document = nlohmann::json::parse(needle_json(result, plan, {{"model", "x"}}, {}));
  EXPECT_EQ(document["verdict"], "INCOMPLETE");
  EXPECT_EQ(document["cells"].size(), 4u);
  EXPECT_EQ(document["cells"][3]["complete"], false);
  EXPECT_EQ(needle_csv(result, plan),
            "length,depth,markers,asked,passed,rate,complete\n70,0,1,1,1,1.0000,1\n70,100,1,0,0,0.0000,0\n"
            "100,0,1,0,0,0.0000,0\n100,100,1,0,0,0.0000,0\n");
}

TEST(Needle, LengthsBeyondTheContextAreRefused) {
  NeedlePlan plan = short_plan();
  plan.lengths = {4065};
  EXPECT_THROW(check_needle(plan, loaded().engine, 0), Error);  // 4065 + 32 > 4096
  plan.lengths = {4064};
  check_needle(plan, loaded().engine, 0);
  EXPECT_THROW(check_needle(plan, loaded().engine, 4095), Error);
}

}  // namespace
}  // namespace strata
