// The choice among arms: order, requests, refusals.
#include "evidence/arm.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <functional>

namespace strata {
namespace {

struct Args {
  int size = 0;
};

std::string needs_128(const Args& args) {
  return args.size == 128 ? "" : "head dim " + std::to_string(args.size) + ", needs 128";
}
void nothing(Queue&, const Args&) {}

constexpr Arm<Args> kArms[] = {
    {"wide", needs_128, nothing},
    {"portable", always_runs<Args>, nothing},
    {"matrix", needs_128, nothing, true, true},
};

class ArmTest : public ::testing::Test {
 protected:
  ArmTest() : sink_(std::tmpfile()), log_(LogLevel::Debug, sink_), queue_(1, log_) {}
  ~ArmTest() override { std::fclose(sink_); }
  std::string chosen(int size) { return std::string(choose_arm<Args>(queue_, "score", kArms, {size}).name); }
  std::string logged() {
    std::string text(4096, '\0');
    std::rewind(sink_);
    text.resize(std::fread(text.data(), 1, text.size(), sink_));
    return text;
  }
  std::FILE* sink_;
  Log log_;
  Queue queue_;
};

TEST_F(ArmTest, FirstThatMayBeADefaultAndCanRun) {
  EXPECT_EQ(chosen(128), "wide");
  EXPECT_EQ(chosen(96), "portable");
}

TEST_F(ArmTest, OptInRunsOnlyWhenAskedFor) {
  queue_.request_arm("score", "matrix");
  EXPECT_EQ(chosen(128), "matrix");
  EXPECT_EQ(logged(), "info: arm score = matrix (cpu-portable)\n");
}

TEST_F(ArmTest, ARefusalHasAReasonAndIsLoggedOnce) {
  queue_.request_arm("score", "matrix");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(chosen(96), "portable");
  EXPECT_EQ(logged(), "warn: arm score: matrix refused: head dim 96, needs 128; using portable\n");
}

TEST_F(ArmTest, StrictArmsRaise) {
  queue_.strict_arms = true;
  queue_.request_arm("score", "matrix");
  EXPECT_EQ(chosen(128), "matrix");
  EXPECT_THROW(chosen(96), Error);
  queue_.request_arm("score", "nowhere");
  EXPECT_THROW(chosen(128), Error);
}

TEST_F(ArmTest, ARunIsASpanOfTheQueuesProfiler) {
  const auto run = [this] { choose_arm<Args>(queue_, "score", kArms, {128}).run(queue_, {128}); };
  Profiler profiler;
  run();  // none is attached
  queue_.profiler = &profiler;
  {
    const ProfileSpan stage(queue_.profiler, Stage::Verify);
    run();
    run();
  }
  const ProfileReport report = profiler.report();
  const StageReport* verify = report.find(Stage::Verify);
  ASSERT_NE(verify, nullptr);
  ASSERT_EQ(verify->parts.size(), 1u);
  EXPECT_EQ(verify->parts[0].name, "score");
  EXPECT_EQ(verify->parts[0].arm, "wide");
  EXPECT_EQ(verify->parts[0].totals.calls, 2);
}

}  // namespace
}  // namespace strata
