#include "text/jinja_limits.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace strata::text::jinja {

namespace {
constexpr uint64_t kStepsBetweenLooksAtTheClock = 4096;
}

void fail(const std::string& message) { throw Error(ErrorKind::Model, message); }

void exceed(std::string_view limit, uint64_t value) {
  fail(fmt::format("the template exceeds its limit '{}' of {}", limit, value));
}

Budget::Budget(const TemplateLimits& l)
    : limits(l),
      deadline_(std::chrono::steady_clock::now() +
                std::chrono::microseconds(static_cast<int64_t>(std::clamp(l.seconds, 0.0, 1e6) * 1e6))) {
  check();
}

void Budget::check() {
  if (steps_ > limits.steps) exceed("steps", limits.steps);
  if (std::chrono::steady_clock::now() > deadline_) {
    fail(fmt::format("the template exceeds its limit 'time' of {} s", limits.seconds));
  }
  next_check_ = std::min(limits.steps + 1, steps_ + kStepsBetweenLooksAtTheClock);
}

void Budget::string(size_t bytes) const {
  if (bytes > limits.string_bytes) exceed("string bytes", limits.string_bytes);
}

void Budget::take(size_t bytes) {
  if (bytes > limits.memory_bytes - memory_) exceed("memory bytes", limits.memory_bytes);
  memory_ += bytes;
}

}  // namespace strata::text::jinja
