// Rows into caches on the CPU.
#pragma once

#include "base/log.h"
#include "model/append.h"

namespace strata {

inline Queue& test_queue() {
  static Log log(LogLevel::Error);
  static Queue queue(1, log);
  return queue;
}

}  // namespace strata
