// What one rendering may use, and the errors of the engine. Errors carry no line; the evaluator adds it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "text/template.h"

namespace strata::text::jinja {

[[noreturn]] void fail(const std::string& message);                // Error{Model}
[[noreturn]] void exceed(std::string_view limit, uint64_t value);  // Error{Model} that names the limit

struct Budget {
  explicit Budget(const TemplateLimits& limits);
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  void step(uint64_t count = 1) {
    steps_ += count;
    if (steps_ >= next_check_) check();
  }
  void moved(size_t bytes) { step(bytes / 64); }
  void string(size_t bytes) const;  // a string of this size is allowed
  void take(size_t bytes);
  void give_back(size_t bytes) { memory_ -= bytes; }

  const TemplateLimits limits;

 private:
  void check();

  uint64_t steps_ = 0, next_check_ = 0;
  size_t memory_ = 0;
  std::chrono::steady_clock::time_point deadline_;
};

}  // namespace strata::text::jinja
