#include "base/thread_pool.h"

#include <algorithm>

#include "base/error.h"

namespace strata {
namespace {

// Operators follow each other within microseconds: a short spin saves most sleeps, and an idle pool still sleeps.
constexpr int kSpins = 4000;

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Returns when the value is no longer `old`.
void wait_changed(std::atomic<uint32_t>& value, uint32_t old) {
  for (int spin = 0; spin < kSpins; ++spin) {
    if (value.load(std::memory_order_acquire) != old) return;
    relax();
  }
  while (value.load(std::memory_order_acquire) == old) value.wait(old, std::memory_order_acquire);
}

// What thread `index` of a pool may run on.
ProcessorSet processors_of(const ThreadPlacement& placement, int index) {
  if (!placement.strict || placement.processors.empty()) return placement.processors;
  ProcessorSet one;
  one.add(placement.processors.nth(index));
  return one;
}

}  // namespace

ThreadPool::ThreadPool(int threads, const ThreadPlacement& placement) {
  if (threads < 1 || threads > 1024)
    throw Error(ErrorKind::Argument, "a thread pool has 1 to 1024 threads, not " + std::to_string(threads));
  const ProcessorSet& processors = placement.processors;
  processors.check_allowed("the processors of a thread pool");
  if (placement.strict && !processors.empty() && threads > processors.count())
    throw Error(ErrorKind::Usage, std::to_string(threads) + " threads cannot have a processor each among " +
                                      processors.describe() + ": fewer threads (-t), or more processors");
  caller_ = processors_of(placement, 0);
  workers_.reserve(static_cast<size_t>(threads - 1));
  for (int thread = 1; thread < threads; ++thread) {
    const ThreadAffinity inherited(processors_of(placement, thread));
    workers_.emplace_back([this] { work(); });
  }
}

ThreadPool::~ThreadPool() {
  stop_.store(true, std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

bool ThreadPool::claim(uint32_t generation, int& share) {
  uint64_t state = claims_.load(std::memory_order_acquire);
  while (state >> 32 == generation && (state & 0xffff) < (state >> 16 & 0xffff)) {
    if (!claims_.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel)) continue;
    share = static_cast<int>(state & 0xffff);
    return true;
  }
  return false;
}

void ThreadPool::run_share(int share) const {
  const int64_t grains = (task_.items + task_.grain - 1) / task_.grain;
  const int64_t count = threads();
  const int64_t begin = grains * share / count * task_.grain;
  const int64_t end = std::min(grains * (share + 1) / count * task_.grain, task_.items);
  if (begin < end) task_.call(task_.context, begin, end, share);
}

void ThreadPool::dispatch(const Task& task) {
  if (task.items <= 0) return;
  if (workers_.empty() || task.items <= task.grain) {
    task.call(task.context, 0, task.items, 0);
    return;
  }
  task_ = task;
  finished_.store(0, std::memory_order_relaxed);
  const auto shares = static_cast<uint32_t>(threads());
  const uint32_t generation = generation_.load(std::memory_order_relaxed) + 1;
  claims_.store(uint64_t{generation} << 32 | uint64_t{shares} << 16, std::memory_order_release);
  generation_.store(generation, std::memory_order_release);
  generation_.notify_all();
  uint32_t mine = 0;
  for (int share = 0; claim(generation, share); ++mine) run_share(share);
  uint32_t done = finished_.fetch_add(mine, std::memory_order_acq_rel) + mine;
  for (; done != shares; done = finished_.load(std::memory_order_acquire)) wait_changed(finished_, done);
}

void ThreadPool::work() {
  for (uint32_t seen = 0;;) {
    wait_changed(generation_, seen);
    seen = generation_.load(std::memory_order_acquire);
    if (stop_.load(std::memory_order_relaxed)) return;
    for (int share = 0; claim(seen, share);) {
      run_share(share);
      finished_.fetch_add(1, std::memory_order_release);
      finished_.notify_one();
    }
  }
}

}  // namespace strata
