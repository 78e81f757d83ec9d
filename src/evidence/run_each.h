// Operator calls of several sequences side by side: each alone is too small to be shared among threads.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "device/side_by_side.h"
#include "evidence/arm.h"

namespace strata {

// Calls that touch nothing of each other's, by an operator that calls no other. Those too small to be shared among
// threads, by their elementary operations, run side by side; the others, and all on an accelerator, one by one.
template <class Args>
void run_each(const SideBySide& beside, const char* op, std::span<const Arm<Args>> arms, std::span<const Args> calls,
              int64_t (*operations)(const Args&)) {
  Queue& queue = beside.queue();
  std::vector<const Args*> small;
  int64_t most = 1;
  for (const Args& args : calls) {
    const bool shared = operations(args) >= ThreadPool::grain_of(1);
    if (shared || queue.accelerator() != nullptr) {
      choose_arm<Args>(queue, op, arms, args).run(queue, args);
      continue;
    }
    small.push_back(&args);
    most = std::max(most, operations(args));
  }
  if (small.empty()) return;
  std::vector<ChosenArm<Args>> chosen;
  for (const Args* args : small) chosen.push_back(choose_arm<Args>(queue, op, arms, *args));
  const ProfileSpan span(queue.profiler, op, chosen.front().name);
  beside.run(static_cast<int64_t>(small.size()), ThreadPool::grain_of(most),
             [&](Queue& own, int64_t i) { chosen[static_cast<size_t>(i)].run(own, *small[static_cast<size_t>(i)]); });
}

}  // namespace strata
