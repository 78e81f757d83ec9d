#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <thread>
#include <vector>

#include "base/error.h"

namespace strata {
namespace {

TEST(ThreadPool, EveryItemOnceAtAnyThreadCount) {
  for (int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (int64_t items : {0, 1, 2, 7, 64, 1000})
      for (int64_t grain : {1, 3, 64, 5000}) {
        std::vector<std::atomic<int>> seen(static_cast<size_t>(items));
        pool.run(items, grain, [&](int64_t begin, int64_t end, int) {
          EXPECT_EQ(begin % grain, 0);
          for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
        });
        for (const auto& count : seen) EXPECT_EQ(count, 1);
      }
  }
}

TEST(ThreadPool, ThePartitionIsFixed) {
  ThreadPool pool(3);
  std::vector<int> owner(100), again(100);
  pool.run(100, 1, [&](int64_t begin, int64_t end, int thread) {
    for (int64_t i = begin; i < end; ++i) owner[static_cast<size_t>(i)] = thread;
  });
  for (int round = 0; round < 50; ++round) {
    pool.run(100, 1, [&](int64_t begin, int64_t end, int thread) {
      for (int64_t i = begin; i < end; ++i) again[static_cast<size_t>(i)] = thread;
    });
    EXPECT_EQ(again, owner);
  }
  EXPECT_NE(owner.front(), owner.back());
}

TEST(ThreadPool, ManyShortCalls) {
  ThreadPool pool(2);
  int64_t total = 0;
  std::vector<int64_t> part(2);
  for (int round = 0; round < 20000; ++round) {
    part = {0, 0};
    pool.run(2, 1, [&](int64_t begin, int64_t end, int thread) { part[static_cast<size_t>(thread)] += end - begin; });
    total += part[0] + part[1];
  }
  EXPECT_EQ(total, 40000);
}

// An idle pool sleeps: the process uses almost no processor time while nothing is asked of it.
TEST(ThreadPool, IdleThreadsDoNotSpin) {
  ThreadPool pool(4);
  pool.run(4, 1, [](int64_t, int64_t, int) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // spins are over by then
  const std::clock_t before = std::clock();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const double used = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  EXPECT_LT(used, 0.1);  // three spinning threads would use 0.9 s on enough cores, 0.3 s on one
}

TEST(ThreadPool, RefusesImpossibleCounts) {
  EXPECT_THROW(ThreadPool(0), Error);
  EXPECT_THROW(ThreadPool(-1), Error);
  EXPECT_THROW(ThreadPool(100000), Error);
}

TEST(ThreadPool, GrainOfKeepsSmallWorkTogether) {
  EXPECT_EQ(ThreadPool::grain_of(1 << 20), 1);
  EXPECT_GT(ThreadPool::grain_of(8), 1000);
  EXPECT_GT(ThreadPool::grain_of(0), 1000);
}

}  // namespace
}  // namespace strata
