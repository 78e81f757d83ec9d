// Waits that end: for work of a device that may never finish.
#pragma once

#include <chrono>
#include <string>
#include <thread>

#include "base/error.h"

namespace strata {

// Until done() says so; it throws what the device reports. Error{Device} naming the last operator after `seconds`.
template <class Done>
void wait_bounded(Done done, double seconds, const std::string& device, const char* last) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  for (int64_t turn = 0; !done(); ++turn) {
    const double waited = std::chrono::duration<double>(Clock::now() - start).count();
    if (waited > seconds)
      throw Error(
          ErrorKind::Device,
          device + " did not finish within " + std::to_string(seconds) + " seconds; the last operator was " + last,
          "wait");
    if (waited > 0.002)
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    else if (turn > 64)
      std::this_thread::yield();
  }
}

}  // namespace strata
