#include "base/processors.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/thread_pool.h"

namespace strata {
namespace {

std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Usage) << error.what();
    return error.what();
  }
  return {};
}

TEST(Processors, MasksAndRangesAreRead) {
  const auto mask = [](const char* text) { return ProcessorSet::parse_mask(text, "-C").describe(); };
  EXPECT_EQ(mask("0x0"), "");
  EXPECT_EQ(mask("1"), "0");
  EXPECT_EQ(mask("0Xf0F"), "0-3,8-11");
  EXPECT_EQ(mask("0x80000000000000000"), "67");
  const auto range = [](const char* text) { return ProcessorSet::parse_range(text, "-Cr").describe(); };
  EXPECT_EQ(range("3"), "3");
  EXPECT_EQ(range("2-5"), "2-5");
  EXPECT_EQ(range("-1"), "0-1");
  const ProcessorSet all = ProcessorSet::allowed();
  ASSERT_FALSE(all.empty());
  const int last = all.nth(all.count() - 1);
  EXPECT_TRUE(ProcessorSet::parse_range("0-", "-Cr").contains(last));
}

TEST(Processors, WhatIsNoSetIsRefused) {
  for (const char* text : {"", "0x", "0xz", "-1", "1 ", "0x+1"})
    EXPECT_NE(refusal([&] { ProcessorSet::parse_mask(text, "-C"); }).find("no mask of processors"), std::string::npos)
        << text;
  EXPECT_NE(refusal([] { ProcessorSet::parse_mask(std::string(257, '1'), "-C"); }), "");
  for (const char* text : {"", "-", "5-2", "a-b", "1-2-3", "1024", "0-1024", "99999999999"})
    EXPECT_NE(refusal([&] { ProcessorSet::parse_range(text, "-Cr"); }).find("no range of processors"),
              std::string::npos)
        << text;
}

TEST(Processors, OneOutsideTheMachineIsNamed) {
  ProcessorSet set = ProcessorSet::allowed();
  set.check_allowed("-C");
  set.add(ProcessorSet::kMost - 1);
  const std::string text = refusal([&] { set.check_allowed("-C"); });
  EXPECT_NE(text.find("may not use processor 1023"), std::string::npos) << text;
  EXPECT_NE(text.find("-C"), std::string::npos) << text;
  EXPECT_NE(refusal([&] { ThreadPool(1, {set, false}); }), "");
}

TEST(Processors, AffinityHoldsForAScope) {
  const std::string before = ProcessorSet::allowed().describe();
  ProcessorSet one;
  one.add(ProcessorSet::allowed().nth(0));
  {
    const ThreadAffinity affinity(one);
    EXPECT_EQ(ProcessorSet::allowed().describe(), one.describe());
    const ThreadAffinity nothing(ProcessorSet{});
    EXPECT_EQ(ProcessorSet::allowed().describe(), one.describe());
  }
  EXPECT_EQ(ProcessorSet::allowed().describe(), before);
}

// Where the shares of many calls ran, by what their threads may use.
std::set<std::string> places(ThreadPool& pool) {
  std::set<std::string> seen;
  std::mutex mutex;
  const ThreadAffinity placed = pool.place_caller();
  std::atomic<int> waiting{0};
  pool.run(pool.threads(), 1, [&](int64_t, int64_t, int) {
    ++waiting;
    while (waiting < pool.threads()) std::this_thread::yield();  // every thread takes one share
    const std::lock_guard lock(mutex);
    seen.insert(ProcessorSet::allowed().describe());
  });
  return seen;
}

TEST(Processors, ThreadsOfAPoolStayWhereTheyArePut) {
  const ProcessorSet all = ProcessorSet::allowed();
  const std::string before = all.describe();
  if (all.count() < 2) GTEST_SKIP() << "one processor";
  ProcessorSet two;
  two.add(all.nth(0));
  two.add(all.nth(1));
  ThreadPool together(2, {two, false});
  EXPECT_EQ(places(together), std::set<std::string>{two.describe()});
  ThreadPool apart(2, {two, true});
  const std::set<std::string> own{std::to_string(all.nth(0)), std::to_string(all.nth(1))};
  EXPECT_EQ(places(apart), own);
  EXPECT_EQ(places(together), std::set<std::string>{two.describe()});  // two pools, one caller
  EXPECT_EQ(ProcessorSet::allowed().describe(), before);
  ThreadPool free(2);
  EXPECT_EQ(places(free), std::set<std::string>{before});
  const std::string text = refusal([&] { ThreadPool(3, {two, true}); });
  EXPECT_NE(text.find("3 threads cannot have a processor each"), std::string::npos) << text;
  EXPECT_EQ(ThreadPool(3, {two, false}).threads(), 3);
}

}  // namespace
}  // namespace strata
