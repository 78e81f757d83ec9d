// The profiler: what stamps are worth, and that every nanosecond is counted once or said to be missing. The clocks are
// made for the purpose, so every figure is exact.
#include "base/profile.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>

namespace strata {
namespace {

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();

// Stands still but for advance(); next() stamps once something else than the time.
class FakeClock {
 public:
  Profiler::Clock clock() {
    return [this]() -> Stamp {
      if (!odd_) return time_;
      odd_ = false;
      return stamp_;
    };
  }
  void advance(uint64_t nanoseconds) { time_ += nanoseconds; }
  void next(Stamp stamp) {
    odd_ = true;
    stamp_ = stamp;
  }

 private:
  uint64_t time_ = 1000;
  bool odd_ = false;
  Stamp stamp_;
};

class ProfileTest : public ::testing::Test {
 protected:
  // One operator of `nanoseconds` in the open stage.
  void op(const char* name, uint64_t nanoseconds, const char* arm = "portable") {
    const ProfileSpan span(&profiler_, name, arm);
    clock_.advance(nanoseconds);
  }
  static const ProfilePart& part(const StageReport& stage, std::string_view name, bool inside = false) {
    static const ProfilePart kNone;
    for (const ProfilePart& one : stage.parts)
      if (one.name == name && one.inside == inside) return one;
    ADD_FAILURE() << "no part " << name;
    return kNone;
  }
  static StageReport stage(const ProfileReport& report, Stage which, size_t track = 0) {
    const StageReport* found = report.find(which, track);
    if (found != nullptr) return *found;
    ADD_FAILURE() << "no stage " << to_string(which);
    return {};
  }
  static int64_t defects(const SpanTotals& totals, StampDefect which) {
    return totals.defects[static_cast<size_t>(which)];
  }

  FakeClock clock_;
  Profiler profiler_{100, clock_.clock()};
};

TEST(Elapsed, OnlyOrderedStampsGiveATime) {
  const auto is = [](Stamp begin, Stamp end) { return elapsed(begin, end); };
  EXPECT_EQ(is(5, 9).nanoseconds, 4);
  EXPECT_EQ(is(5, 9).defect, StampDefect::None);
  EXPECT_EQ(is(7, 7).nanoseconds, 0);
  EXPECT_EQ(is(7, 7).defect, StampDefect::None);
  EXPECT_EQ(is(0, kMax >> 1).nanoseconds, std::numeric_limits<int64_t>::max());
  EXPECT_EQ(is(kMax - 3, kMax).nanoseconds, 3);
  EXPECT_EQ(is({}, 9).defect, StampDefect::Missing);
  EXPECT_EQ(is(9, {}).defect, StampDefect::Missing);
  EXPECT_EQ(is({}, {}).defect, StampDefect::Missing);
  EXPECT_EQ(is(9, 5).defect, StampDefect::Reversed);
  EXPECT_EQ(is(kMax, 0).defect, StampDefect::Reversed);  // unsigned, the difference would be 1
  EXPECT_EQ(is(0, (kMax >> 1) + 1).defect, StampDefect::Overflow);
  EXPECT_EQ(is(1, kMax).defect, StampDefect::Overflow);
  EXPECT_EQ(device_stamp(0), std::nullopt);
  EXPECT_EQ(device_stamp(1), Stamp(1));
}

TEST(SpanTotals, ASumBeyond63BitsIsNoNumber) {
  SpanTotals totals;
  totals.add(0, kMax >> 1);
  EXPECT_EQ(totals.total(), std::numeric_limits<int64_t>::max());
  totals.add(0, 1);
  EXPECT_EQ(totals.total(), std::nullopt);
  EXPECT_EQ(totals.known, std::numeric_limits<int64_t>::max());
  EXPECT_EQ(totals.calls, 2);
  EXPECT_EQ(totals.unknown(), 1);
}

TEST(Share, IsAPercentageOrAReason) {
  EXPECT_DOUBLE_EQ(*share_of(1, 4).percent, 25);
  EXPECT_DOUBLE_EQ(*share_of(4, 4).percent, 100);
  EXPECT_DOUBLE_EQ(*share_of(0, 4).percent, 0);
  EXPECT_EQ(share_of(5, 4).reason, "above the whole");
  EXPECT_EQ(share_of(-1, 4).reason, "negative");
  EXPECT_EQ(share_of(std::nullopt, 4).reason, "missing");
  EXPECT_EQ(share_of(1, std::nullopt).reason, "missing");
  EXPECT_EQ(share_of(0, 0).reason, "of nothing");
  EXPECT_EQ(share_of(1, 0).reason, "above the whole");
  for (const Share& share : {share_of(5, 4), share_of(-1, 4), share_of(std::nullopt, 4), share_of(0, 0)})
    EXPECT_EQ(share.percent, std::nullopt);
}

// Each stage once, each with another time, so that a time in the wrong place shows.
TEST_F(ProfileTest, EveryStageStampedOnceSumsToTheTotal) {
  uint64_t total = 0;
  for (size_t i = 1; i < kStages; ++i) {
    clock_.advance(3);
    const ProfileSpan span(&profiler_, static_cast<Stage>(i), static_cast<int64_t>(i));
    op("matmul", uint64_t{1} << (2 * i));
    op("norm", uint64_t{1} << (2 * i + 1));
    clock_.advance(i);
    total += 3 + (uint64_t{3} << (2 * i)) + i;
  }
  const ProfileReport report = profiler_.report();
  ASSERT_EQ(report.stages.size(), kStages);
  const StageReport run = stage(report, Stage::Run);
  EXPECT_EQ(run.whole, static_cast<int64_t>(total));
  EXPECT_EQ(run.gap(), static_cast<int64_t>(3 * (kStages - 1)));
  EXPECT_EQ(*run.sum() + *run.gap(), *run.whole);
  for (size_t i = 1; i < kStages; ++i) {
    const StageReport one = stage(report, static_cast<Stage>(i));
    EXPECT_EQ(one.spans.calls, 1);
    EXPECT_EQ(one.tokens, static_cast<int64_t>(i));
    EXPECT_EQ(part(one, "matmul").totals.total(), int64_t{1} << (2 * i));
    EXPECT_EQ(part(one, "norm").totals.total(), int64_t{1} << (2 * i + 1));
    EXPECT_EQ(one.gap(), static_cast<int64_t>(i));
    EXPECT_EQ(part(run, to_string(static_cast<Stage>(i))).totals.total(), one.whole);
    EXPECT_NE(to_string(static_cast<Stage>(i)), "unknown");
  }
  EXPECT_EQ(report.still_open + report.out_of_order, 0);
}

TEST_F(ProfileTest, CallsOfOneArmAddUpAndArmsStayApart) {
  {
    const ProfileSpan span(&profiler_, Stage::Decode);
    for (int i = 0; i < 10; ++i) op("matmul", 7, "avx512");
    op("matmul", 5, "portable");
    op("matmul", 0, "portable");
  }
  const StageReport decode = stage(profiler_.report(), Stage::Decode);
  ASSERT_EQ(decode.parts.size(), 2u);
  EXPECT_EQ(decode.parts[0].totals.calls, 10);
  EXPECT_EQ(decode.parts[0].totals.total(), 70);
  EXPECT_EQ(decode.parts[1].totals.calls, 2);
  EXPECT_EQ(decode.parts[1].totals.total(), 5);
}

TEST_F(ProfileTest, AMissingStampMakesTheCellMissing) {
  {
    const ProfileSpan span(&profiler_, Stage::Verify);
    op("matmul", 10);
    clock_.next({});  // no beginning
    op("matmul", 20);
    op("norm", 5);
  }
  const ProfileReport report = profiler_.report();
  const StageReport verify = stage(report, Stage::Verify);
  const SpanTotals& matmul = part(verify, "matmul").totals;
  EXPECT_EQ(matmul.calls, 2);
  EXPECT_EQ(matmul.total(), std::nullopt);
  EXPECT_EQ(matmul.known, 10);
  EXPECT_EQ(defects(matmul, StampDefect::Missing), 1);
  EXPECT_EQ(part(verify, "norm").totals.total(), 5);
  EXPECT_EQ(verify.whole, 35);
  EXPECT_EQ(verify.sum(), std::nullopt);
  EXPECT_EQ(verify.gap(), std::nullopt);
  EXPECT_EQ(stage(report, Stage::Run).gap(), 0);  // the stage itself was measured
  EXPECT_EQ(profiler_.events().size(), 3u);       // and nothing is drawn of what has no time
}

TEST_F(ProfileTest, ReversedAndWrappedStampsAreNeverNumbers) {
  {
    const ProfileSpan span(&profiler_, Stage::Verify);
    clock_.next(kMax);  // the beginning lies after the end
    op("head", 4);
    clock_.next(0);
    op("head", 4);  // fine: 0 is a time like another
    const ProfileSpan far(&profiler_, "far", "portable");
    clock_.next(kMax);  // an end 2^64 away
  }
  const StageReport verify = stage(profiler_.report(), Stage::Verify);
  EXPECT_EQ(defects(part(verify, "head").totals, StampDefect::Reversed), 1);
  EXPECT_EQ(part(verify, "head").totals.known, 1008);
  EXPECT_EQ(defects(part(verify, "far").totals, StampDefect::Overflow), 1);
  EXPECT_EQ(part(verify, "far").totals.known, 0);
  EXPECT_EQ(verify.sum(), std::nullopt);
}

TEST_F(ProfileTest, AClockThatThrowsLeavesNoStamp) {
  Profiler profiler(10, []() -> Stamp { throw std::runtime_error("no device"); });
  { const ProfileSpan span(&profiler, Stage::Load); }
  EXPECT_EQ(stage(profiler.report(), Stage::Load).whole, std::nullopt);
  EXPECT_EQ(stage(profiler.report(), Stage::Run).whole, std::nullopt);
}

TEST_F(ProfileTest, AnOpenSpanIsMissingInTheReportAndCountedLater) {
  auto span = std::make_unique<ProfileSpan>(&profiler_, Stage::Decode, 2);
  op("matmul", 6);
  const ProfileReport early = profiler_.report();
  EXPECT_EQ(early.still_open, 1);
  EXPECT_EQ(stage(early, Stage::Decode).whole, std::nullopt);
  EXPECT_EQ(stage(early, Stage::Decode).spans.calls, 1);
  EXPECT_EQ(stage(early, Stage::Decode).tokens, 2);
  EXPECT_EQ(part(stage(early, Stage::Run), "decode").totals.total(), std::nullopt);
  EXPECT_EQ(stage(early, Stage::Run).gap(), std::nullopt);
  span.reset();
  const ProfileReport late = profiler_.report();
  EXPECT_EQ(late.still_open, 0);
  EXPECT_EQ(stage(late, Stage::Decode).whole, 6);
  EXPECT_EQ(stage(late, Stage::Decode).tokens, 2);
}

TEST_F(ProfileTest, NestedStagesArePartsOfTheOuterOne) {
  {
    ProfileSpan step(&profiler_, Stage::Decode);
    {
      const ProfileSpan span(&profiler_, Stage::Draft, 3);
      op("matmul", 10);
    }
    {
      const ProfileSpan span(&profiler_, Stage::Verify, 4);
      op("matmul", 30);
      clock_.advance(1);
    }
    op("sample", 2, "host");
    step.add_tokens(4);
  }
  const ProfileReport report = profiler_.report();
  const StageReport decode = stage(report, Stage::Decode);
  EXPECT_EQ(part(decode, "draft").totals.total(), 10);
  EXPECT_EQ(part(decode, "verify").totals.total(), 31);
  EXPECT_EQ(decode.parts.size(), 3u);  // the operators of the inner stages are theirs
  EXPECT_EQ(decode.sum(), 43);
  EXPECT_EQ(decode.tokens, 4);
  EXPECT_EQ(stage(report, Stage::Verify).gap(), 1);
  EXPECT_EQ(stage(report, Stage::Run).parts.size(), 1u);
  EXPECT_EQ(stage(report, Stage::Run).sum(), 43);
}

TEST_F(ProfileTest, AnOperatorInsideAnotherIsShownAndNotSummed) {
  {
    const ProfileSpan span(&profiler_, Stage::Prompt);
    const ProfileSpan outer(&profiler_, "experts", "portable");
    op("matmul", 8);
    clock_.advance(2);
  }
  const StageReport prompt = stage(profiler_.report(), Stage::Prompt);
  EXPECT_EQ(part(prompt, "matmul", true).totals.total(), 8);
  EXPECT_EQ(part(prompt, "experts").totals.total(), 10);
  EXPECT_EQ(prompt.sum(), 10);
  EXPECT_EQ(prompt.gap(), 0);
}

TEST_F(ProfileTest, AStageInsideItselfIsMeasuredOnce) {
  {
    const ProfileSpan outer(&profiler_, Stage::Verify, 1);
    const ProfileSpan inner(&profiler_, Stage::Verify, 2);
    op("matmul", 5);
  }
  const StageReport verify = stage(profiler_.report(), Stage::Verify);
  EXPECT_EQ(verify.spans.calls, 1);
  EXPECT_EQ(verify.whole, 5);
  EXPECT_EQ(verify.sum(), 5);
  EXPECT_EQ(verify.tokens, 3);
}

TEST_F(ProfileTest, TheRunIsPartOfNothing) {
  {
    const ProfileSpan span(&profiler_, Stage::Run);
    op("matmul", 5);
  }
  profiler_.record({.track = "cuda:0", .stage = Stage::Run, .begin = 0, .end = 9});
  const ProfileReport report = profiler_.report();
  EXPECT_EQ(stage(report, Stage::Run).parts.size(), 1u);
  EXPECT_EQ(stage(report, Stage::Run).gap(), 0);
  EXPECT_EQ(stage(report, Stage::Run, 1).whole, 9);
}

TEST_F(ProfileTest, OverlappingSpansAreCountedAndGiveANegativeGap) {
  {
    auto stage_span = std::make_unique<ProfileSpan>(&profiler_, Stage::Commit);
    const ProfileSpan late(&profiler_, "copy", "host");
    clock_.advance(5);
    stage_span.reset();  // before what opened inside it
    clock_.advance(7);
  }
  const ProfileReport report = profiler_.report();
  EXPECT_EQ(report.out_of_order, 1);
  const StageReport commit = stage(report, Stage::Commit);
  EXPECT_EQ(commit.whole, 5);
  EXPECT_EQ(commit.sum(), 12);
  EXPECT_EQ(commit.gap(), -7);
  EXPECT_TRUE(share_of(commit.gap(), commit.whole).error());
  EXPECT_TRUE(share_of(commit.sum(), commit.whole).error());
}

TEST_F(ProfileTest, OperatorsOutsideStagesBelongToTheRun) {
  op("matmul", 9);
  const StageReport run = stage(profiler_.report(), Stage::Run);
  EXPECT_EQ(part(run, "matmul").totals.total(), 9);
  EXPECT_EQ(run.gap(), 0);
}

TEST_F(ProfileTest, RecordedSpansComeInAnyOrderOnATrackOfTheirOwn) {
  {
    const ProfileSpan span(&profiler_, Stage::Verify, 4);
    clock_.advance(100);
  }
  profiler_.record(
      {.track = "cuda:0", .stage = Stage::Verify, .op = "norm", .arm = "warp", .begin = 1060, .end = 1080});
  profiler_.record(
      {.track = "cuda:0", .stage = Stage::Verify, .op = "matmul", .arm = "mma", .begin = 1000, .end = 1050});
  const StageReport device = stage(profiler_.report(), Stage::Verify, 1);
  EXPECT_EQ(device.track_name, "cuda:0");
  EXPECT_EQ(device.whole, 100);  // of the host: the device has no span of the stage
  EXPECT_EQ(device.sum(), 70);
  EXPECT_EQ(device.gap(), 30);
  EXPECT_EQ(stage(profiler_.report(), Stage::Verify).sum(), 0);

  profiler_.record({.track = "cuda:0", .stage = Stage::Verify, .begin = 1000, .end = 1080, .tokens = 4});
  const StageReport measured = stage(profiler_.report(), Stage::Verify, 1);
  EXPECT_EQ(measured.whole, 80);
  EXPECT_EQ(measured.gap(), 10);
  EXPECT_EQ(measured.tokens, 4);

  profiler_.record(
      {.track = "cuda:0", .stage = Stage::Verify, .op = "norm", .arm = "warp", .begin = device_stamp(0), .end = 1080});
  EXPECT_EQ(stage(profiler_.report(), Stage::Verify, 1).sum(), std::nullopt);
}

TEST_F(ProfileTest, OverlappingRecordsAreAnErrorAndNoPercentage) {
  for (int i = 0; i < 2; ++i)
    profiler_.record({.track = "hip:0", .stage = Stage::Verify, .op = "matmul", .begin = 10, .end = 60});
  profiler_.record({.track = "hip:0", .stage = Stage::Verify, .begin = 0, .end = 80});
  const StageReport verify = stage(profiler_.report(), Stage::Verify, 1);
  EXPECT_EQ(verify.gap(), -20);
  EXPECT_EQ(share_of(verify.sum(), verify.whole).reason, "above the whole");
}

TEST_F(ProfileTest, EventsStopAtTheLimitAndAreCounted) {
  for (int i = 0; i < 130; ++i) op("matmul", 1);
  const ProfileReport report = profiler_.report();
  EXPECT_EQ(report.events, 100u);
  EXPECT_EQ(report.event_limit, 100u);
  EXPECT_EQ(report.dropped_events, 30);
  EXPECT_EQ(part(stage(report, Stage::Run), "matmul").totals.total(), 130);  // the tables lose nothing

  Profiler tables(0, clock_.clock());
  { const ProfileSpan span(&tables, Stage::Load); }
  EXPECT_EQ(tables.report().dropped_events, 0);  // none was asked for
}

TEST_F(ProfileTest, TablesAreBounded) {
  for (int i = 0; i < 500; ++i) op(("op" + std::to_string(i)).c_str(), 2);
  for (int i = 0; i < 20; ++i)
    profiler_.record({.track = "device" + std::to_string(i), .stage = Stage::Verify, .op = "x", .begin = 0, .end = 1});
  const ProfileReport report = profiler_.report();
  const StageReport run = stage(report, Stage::Run);
  EXPECT_LE(run.parts.size(), Profiler::kMaxParts);
  EXPECT_EQ(run.sum(), 1000);
  EXPECT_EQ(part(run, "(others)").totals.calls, 500 - static_cast<int64_t>(run.parts.size()) + 1);
  ASSERT_EQ(profiler_.tracks().size(), Profiler::kMaxTracks);
  EXPECT_EQ(profiler_.tracks().back(), "(others)");
  EXPECT_EQ(stage(report, Stage::Verify, Profiler::kMaxTracks - 1).sum(), 14);
}

TEST(ProfileSpan, WithoutAProfilerDoesNothing) {
  ProfileSpan stage(nullptr, Stage::Decode);
  const ProfileSpan op(nullptr, "matmul", "portable");
  stage.add_tokens(1);
}

TEST(ProfileSpan, OutlivingTheProfilerIsHarmless) {
  auto profiler = std::make_unique<Profiler>();
  const ProfileSpan outer(profiler.get(), Stage::Decode);
  const ProfileSpan merged(profiler.get(), Stage::Decode);
  profiler.reset();
}

TEST(Profiler, TheRealClockGoesForward) {
  Profiler profiler;
  {
    const ProfileSpan span(&profiler, Stage::Decode);
    const ProfileSpan inner(&profiler, "matmul", "portable");
  }
  const ProfileReport report = profiler.report();
  for (const StageReport& stage : report.stages) {
    ASSERT_TRUE(stage.gap().has_value());
    EXPECT_GE(*stage.gap(), 0);
  }
}

}  // namespace
}  // namespace strata
