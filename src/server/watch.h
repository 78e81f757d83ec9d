// Says once in a while whether a client has left: asking takes a call of the system.
#pragma once

#include <chrono>
#include <functional>

namespace strata::server {

// How long a client that left may stay unnoticed.
inline constexpr std::chrono::milliseconds kLook{50};

class Watch {
 public:
  explicit Watch(const std::function<bool()>& gone) : gone_(gone) {}
  bool left() {
    const auto now = std::chrono::steady_clock::now();
    if (now < next_) return false;
    next_ = now + kLook;
    return gone_();
  }

 private:
  const std::function<bool()>& gone_;
  std::chrono::steady_clock::time_point next_{};
};

}  // namespace strata::server
