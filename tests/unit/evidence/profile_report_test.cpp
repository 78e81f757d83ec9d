// Tables, JSON and traces of profiles whose every nanosecond is known.
#include "evidence/profile_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "evidence/profile_trace.h"
#include "support/trace_check.h"

namespace strata {
namespace {

class ProfileReportTest : public ::testing::Test {
 protected:
  void op(const char* name, uint64_t microseconds) {
    const ProfileSpan span(&profiler_, name, "portable");
    time_ += microseconds * 1000;
  }
  std::string trace() {
    std::string text;
    write_trace(profiler_, profiler_.report(), [&](std::string_view part) { text += part; });
    return text;
  }

  uint64_t time_ = 5'000'000;
  bool stamps_ = true;
  Profiler profiler_{1000, [this]() -> Stamp { return stamps_ ? Stamp(time_) : std::nullopt; }};
};

TEST_F(ProfileReportTest, PartsWholeAndGapStandTogether) {
  {
    const ProfileSpan span(&profiler_, Stage::Decode, 4);
    op("norm", 100);
    op("matmul", 800);
    time_ += 100'000;
  }
  time_ += 1'000'000;
  EXPECT_EQ(profile_text(profiler_.report()),
            "run\n"
            "  stage                  arm              calls           ms     share\n"
            "  decode                                      1        1.000    50.0 %\n"
            "  sum of parts                                         1.000    50.0 %\n"
            "  whole                                                2.000\n"
            "  gap                                                  1.000    50.0 %\n"
            "\n"
            "decode: 1 call, 4 tokens, 0.250 ms per token\n"
            "  part                   arm              calls           ms     share us per token\n"
            "  matmul                 portable             1        0.800    80.0 %        200.0\n"
            "  norm                   portable             1        0.100    10.0 %         25.0\n"
            "  sum of parts                                         0.900    90.0 %        225.0\n"
            "  whole                                                1.000                  250.0\n"
            "  gap                                                  0.100    10.0 %         25.0\n");
}

TEST_F(ProfileReportTest, WhatHasNoTimeReadsMissing) {
  {
    const ProfileSpan span(&profiler_, Stage::Verify);
    op("matmul", 700);
    const ProfileSpan lost(&profiler_, "matmul", "portable");
    stamps_ = false;
  }
  stamps_ = true;
  const Stage verify[] = {Stage::Verify};
  EXPECT_EQ(profile_text(profiler_.report(), verify),
            "verify: 1 call\n"
            "  part                   arm              calls           ms     share\n"
            "  matmul                 portable             2      missing   missing\n"
            "  sum of parts                                       missing   missing\n"
            "  whole                                              missing\n"
            "  gap                                                missing   missing\n"
            "  1 of 2 calls of matmul have no time: 1 missing; the others took 0.700 ms\n");
  const auto json = nlohmann::json::parse(profile_json(profiler_.report()));
  const auto& part = json["stages"][1]["parts"][0];
  EXPECT_TRUE(part["ms"].is_null());
  EXPECT_TRUE(part["share"].is_null());
  EXPECT_EQ(part["share_reason"], "missing");
  EXPECT_EQ(part["missing"], 1);
  EXPECT_DOUBLE_EQ(part["known_ms"], 0.7);
  EXPECT_TRUE(json["stages"][1]["gap_ms"].is_null());
}

TEST_F(ProfileReportTest, ImpossibleSharesReadErrorAndNotANumber) {
  profiler_.record({.track = "cuda:0", .stage = Stage::Verify, .op = "matmul", .begin = 0, .end = 3'000'000});
  profiler_.record({.track = "cuda:0", .stage = Stage::Verify, .begin = 0, .end = 2'000'000});
  const Stage verify[] = {Stage::Verify};
  EXPECT_EQ(profile_text(profiler_.report(), verify),
            "verify on cuda:0: 1 call\n"
            "  part                   arm              calls           ms     share\n"
            "  matmul                                      1        3.000     error\n"
            "  sum of parts                                         3.000     error\n"
            "  whole                                                2.000\n"
            "  gap                                                 -1.000     error\n"
            "  error: the parts are longer than the whole; some overlap\n");
  const auto json = nlohmann::json::parse(profile_json(profiler_.report()));
  for (const auto& stage : json["stages"])
    if (stage["stage"] == "verify") {
      EXPECT_EQ(stage["parts"][0]["share_reason"], "above the whole");
      EXPECT_EQ(stage["gap_ms"], -1.0);
    }
}

TEST_F(ProfileReportTest, TheVerifyWindowIsItsThreeStages) {
  for (const Stage stage : {Stage::Load, Stage::Draft, Stage::Verify, Stage::Commit}) {
    const ProfileSpan span(&profiler_, stage);
    op("matmul", 10);
  }
  const std::string text = profile_text(profiler_.report(), kVerifyWindow);
  for (const char* heading : {"draft: 1 call", "verify: 1 call", "commit: 1 call"})
    EXPECT_NE(text.find(heading), std::string::npos) << text;
  EXPECT_EQ(text.find("load"), std::string::npos) << text;
}

TEST_F(ProfileReportTest, TracesNest) {
  {
    const ProfileSpan step(&profiler_, Stage::Decode, 2);
    {
      const ProfileSpan span(&profiler_, Stage::Draft);  // begins with its outer stage
      op("norm", 0);
      op("matmul", 2);
    }
    op("matmul", 3);
  }
  const auto lines = test::check_trace(trace());
  ASSERT_EQ(lines.size(), 1u);
  const auto& bars = lines.at("host");
  ASSERT_EQ(bars.size(), 6u);
  EXPECT_EQ(bars[0].name, "run");
  EXPECT_EQ(bars[0].end, 5000);
  EXPECT_EQ(bars[1].name, "decode");
  EXPECT_EQ(bars[1].parent, "run");
  EXPECT_EQ(bars[1].args["tokens"], 2);
  EXPECT_EQ(bars[2].name, "draft");
  EXPECT_EQ(bars[2].parent, "decode");
  EXPECT_EQ(bars[5].name, "matmul");
  EXPECT_EQ(bars[5].parent, "decode");
  EXPECT_EQ(bars[5].begin, 2000);
  EXPECT_EQ(bars[5].args["arm"], "portable");
  EXPECT_EQ(bars[5].args["stage"], "decode");
}

TEST_F(ProfileReportTest, TracesKeepEveryNanosecond) {
  profiler_.record({.track = "cuda:0", .stage = Stage::Verify, .op = "k", .begin = 5'001'007, .end = 5'003'012});
  const auto bar = test::check_trace(trace()).at("cuda:0").at(0);
  EXPECT_EQ(bar.begin, 1'007);  // after the beginning of the run
  EXPECT_EQ(bar.end, 3'012);
}

TEST_F(ProfileReportTest, WhatIsMissingStandsFirstThenTheLongest) {
  op("short", 1);
  op("long", 2);
  profiler_.record({.track = "a", .stage = Stage::Run, .op = "x", .begin = 0, .end = 9});
  const ProfileSpan lost(&profiler_, "lost", "portable");
  const auto parts = nlohmann::json::parse(profile_json(profiler_.report()))["stages"][0]["parts"];
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0]["name"], "lost");
  EXPECT_EQ(parts[1]["name"], "long");
  EXPECT_EQ(parts[2]["name"], "short");
}

TEST_F(ProfileReportTest, OverlappingBarsGetALineOfTheirOwn) {
  for (const uint64_t begin : {40, 0, 20})  // out of order, each longer than the distance to the next
    profiler_.record({.track = "cuda:0 \"a\"\n", .stage = Stage::Verify, .op = "k", .begin = begin, .end = begin + 30});
  for (uint64_t i = 0; i < 200; ++i)  // a staircase: never more than 64 lines are drawn
    profiler_.record({.track = "hip:0", .stage = Stage::Verify, .op = "k", .begin = i, .end = i + 1000});
  const std::string text = trace();
  const auto lines = test::check_trace(text);
  EXPECT_EQ(lines.at("cuda:0 \"a\"\n").size(), 2u);
  EXPECT_EQ(lines.at("cuda:0 \"a\"\n (2)").size(), 1u);
  EXPECT_EQ(lines.size(), 64u);
  EXPECT_EQ(nlohmann::json::parse(text)["otherData"]["undrawn_events"], 200 - 61);
}

TEST_F(ProfileReportTest, ATraceSaysWhatItLacks) {
  Profiler small(2, [this]() -> Stamp { return time_; });
  for (int i = 0; i < 5; ++i) const ProfileSpan span(&small, "matmul", "portable");
  const ProfileSpan open(&small, Stage::Decode);
  std::string text;
  write_trace(small, small.report(), [&](std::string_view part) { text += part; });
  const auto other = nlohmann::json::parse(text)["otherData"];
  EXPECT_EQ(other["events"], 2);
  EXPECT_EQ(other["dropped_events"], 3);
  EXPECT_EQ(other["event_limit"], 2);
  EXPECT_EQ(other["spans_still_open"], 1);
  EXPECT_EQ(test::check_trace(text).at("host").size(), 3u);
}

}  // namespace
}  // namespace strata
