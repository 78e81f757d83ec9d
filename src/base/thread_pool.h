// A thread pool with a fixed partition: the shares of a call depend on its item count and the thread count alone, so
// nothing about a result can hang on timing. Which thread computes a share does: whoever is free takes the next one, so
// that a thread that waits for a processor holds nobody up.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <vector>

#include "base/processors.h"

namespace strata {

// Where the threads of a pool run.
struct ThreadPlacement {
  ProcessorSet processors = {};  // empty: wherever the system puts them
  bool strict = false;           // each thread stays on one of them, the caller on the lowest
};

class ThreadPool {
 public:
  // 1 thread or more; the calling thread is one of them. Error{Usage} for processors that this program may not use, and
  // for more threads than processors when each has its own.
  explicit ThreadPool(int threads, const ThreadPlacement& placement = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Items that make a share worth handing to another thread, given the elementary operations of one item.
  static int64_t grain_of(int64_t operations) {
    constexpr int64_t kWorthSharing = 32768;  // about 10 us, twice what waking a thread costs
    return operations >= kWorthSharing ? 1 : kWorthSharing / (operations < 1 ? 1 : operations);
  }

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Keeps the calling thread where the pool's first thread belongs, for the life of what is returned: around a stretch
  // of calls of run(), since the thread is not the pool's own.
  ThreadAffinity place_caller() const { return ThreadAffinity(caller_); }

  // Calls body(begin, end, share) once per non-empty share of [0, items); returns when all are done. Shares hold whole
  // multiples of `grain` items (but the last) and are numbered below threads(). body must not throw. One caller at a
  // time.
  template <class Body>
  void run(int64_t items, int64_t grain, Body&& body) {
    using Plain = std::remove_reference_t<Body>;
    Task task;
    task.items = items;
    task.grain = grain < 1 ? 1 : grain;
    task.context = const_cast<void*>(static_cast<const void*>(&body));
    task.call = [](void* context, int64_t begin, int64_t end, int share) {
      (*static_cast<Plain*>(context))(begin, end, share);
    };
    dispatch(task);
  }

 private:
  struct Task {
    int64_t items = 0;
    int64_t grain = 1;
    void* context = nullptr;
    void (*call)(void*, int64_t, int64_t, int) = nullptr;
  };
  void dispatch(const Task& task);
  bool claim(uint32_t generation, int& share);  // takes the next share of that call; false: none is left
  void run_share(int share) const;
  void work();

  ProcessorSet caller_;
  std::vector<std::thread> workers_;
  Task task_;                            // changes only while no share is claimed
  std::atomic<uint64_t> claims_{0};      // generation (32 bits), shares (16), next share (16)
  std::atomic<uint32_t> generation_{0};  // of claims_, for sleepers
  std::atomic<uint32_t> finished_{0};    // shares of the current call
  std::atomic<bool> stop_{false};
};

}  // namespace strata
