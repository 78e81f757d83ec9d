// Work on rows in parallel that may fail.
#pragma once

#include <cstdint>
#include <exception>
#include <vector>

#include "base/thread_pool.h"

namespace strata {

// body(row, share) for every row of [0, rows); share is below pool.threads(). What it throws for the lowest row is
// thrown when all are done.
template <class Body>
void run_rows(ThreadPool& pool, int64_t rows, Body&& body) {
  std::vector<std::exception_ptr> failures(static_cast<size_t>(pool.threads()));
  pool.run(rows, 1, [&](int64_t begin, int64_t end, int share) {
    try {
      for (int64_t row = begin; row < end; ++row) body(row, share);
    } catch (...) {
      failures[static_cast<size_t>(share)] = std::current_exception();
    }
  });
  for (const std::exception_ptr& failure : failures)  // shares are in the order of their rows
    if (failure) std::rethrow_exception(failure);
}

}  // namespace strata
