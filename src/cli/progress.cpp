#include "cli/progress.h"

#include <unistd.h>

namespace strata::cli {
namespace {

constexpr auto kPatience = std::chrono::seconds(2);
constexpr auto kInterval = std::chrono::milliseconds(100);
constexpr size_t kWidth = 79;

}  // namespace

Progress::Progress(std::FILE* stream) : stream_(stream), terminal_(::isatty(::fileno(stream)) != 0) {}

bool Progress::due() const {
  if (!terminal_) return false;
  const auto now = Clock::now();
  return now - start_ >= kPatience && now - last_ >= kInterval;
}

void Progress::show(const std::string& line) {
  if (!due()) return;
  last_ = Clock::now();
  std::string text = line.substr(0, kWidth);
  const size_t length = text.size();
  if (length < shown_) text.append(shown_ - length, ' ');
  shown_ = length;
  std::fputs((text + "\r").c_str(), stream_);
  std::fflush(stream_);
}

void Progress::clear() {
  if (shown_ == 0) return;
  std::fputs((std::string(shown_, ' ') + "\r").c_str(), stream_);
  std::fflush(stream_);
  shown_ = 0;
}

}  // namespace strata::cli
