// Calls on queues of one thread each, side by side on the threads of another queue.
#pragma once

#include <memory>
#include <vector>

#include "device/device.h"

namespace strata {

// Queues of one thread each, as many as a queue has threads.
class SideBySide {
 public:
  explicit SideBySide(Queue& queue) : queue_(queue) {
    for (int thread = 0; thread < queue.pool().threads(); ++thread)
      single_.push_back(std::make_unique<Queue>(1, queue.log()));
  }

  Queue& queue() const { return queue_; }

  // body(queue, i) for i below count. On the CPU; body must not throw.
  template <class Body>
  void run(int64_t count, int64_t grain, const Body& body) const {
    queue_.pool().run(count, grain, [&](int64_t begin, int64_t end, int share) {
      Queue& own = *single_[static_cast<size_t>(share)];
      for (int64_t i = begin; i < end; ++i) body(own, i);
    });
  }

 private:
  Queue& queue_;
  std::vector<std::unique_ptr<Queue>> single_;
};

}  // namespace strata
