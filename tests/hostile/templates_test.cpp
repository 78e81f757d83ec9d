// Hostile chat templates through the engine that renders them: each is an error of one line or renders, in bounded time
// and memory.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>

#include "allocations.h"
#include "base/error.h"
#include "fuzz/malformed.h"
#include "text/chat.h"

namespace strata::test {
namespace {

TEST(Malformed, TemplatesThroughTheEngine) {
  constexpr double kSeconds = 6;                 // the limit of the engine is 5 s of wall time
  constexpr size_t kMemory = size_t{320} << 20;  // its limit is 256 MiB of values, and the source comes on top
  double slowest = 0;
  size_t largest = 0;
  int refused = 0, total = 0;
  for (const HostileTemplate& hostile : hostile_templates()) {
    SCOPED_TRACE(hostile.name);
    ++total;
    const auto start = std::chrono::steady_clock::now();
    const size_t before = allocated_bytes();
    reset_peak();
    try {
      const text::ChatTemplate chat(hostile.source, "<s>", "</s>");
      text::ChatRequest request;
      request.messages.push_back({.role = "user", .content = "hello"});
      chat.render(request);
    } catch (const Error& error) {
      ++refused;
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const size_t peak = peak_bytes() - std::min(before, peak_bytes());
    EXPECT_LT(seconds, kSeconds);
    EXPECT_LT(peak, kMemory);
    slowest = std::max(slowest, seconds);
    largest = std::max(largest, peak);
  }
  std::printf("%d templates, %d refused, slowest %.2f s, most memory %.1f MiB\n", total, refused, slowest,
              static_cast<double>(largest) / 1048576);
  EXPECT_GT(refused, total / 2);
}

}  // namespace
}  // namespace strata::test
