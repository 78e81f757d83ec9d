#include "text/stream.h"

#include <fmt/format.h>

#include "base/error.h"
#include "text/unicode.h"

namespace strata::text {

namespace {
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
}

std::string Utf8Stream::push(std::string_view bytes) {
  held_ += bytes;
  std::string_view rest = held_;
  std::string released;
  released.reserve(rest.size());
  while (!rest.empty()) {
    const Utf8Result c = decode_utf8(rest);
    if (c.kind == Utf8Kind::Incomplete) break;
    released += c.kind == Utf8Kind::Invalid && replace_ ? kReplacement : rest.substr(0, c.length);
    rest.remove_prefix(c.length);
  }
  held_.erase(0, held_.size() - rest.size());
  return released;
}

std::string Utf8Stream::finish() {
  std::string released = std::move(held_);
  held_.clear();
  if (replace_ && !released.empty()) released = kReplacement;
  return released;
}

StopStrings::StopStrings(const std::vector<std::string>& stops) {
  for (size_t i = 0; i < stops.size(); ++i) {
    if (!matcher_.add(stops[i], static_cast<int32_t>(i))) {
      const auto message = fmt::format("stop strings of more than {} bytes in all", ByteMatcher::kMaxBytes);
      throw Error(ErrorKind::Argument, message, "stop");
    }
  }
  matcher_.build();
}

std::string StopStrings::push(std::string_view bytes) {
  if (stopped_) return {};
  const size_t held_before = held_.size();
  held_ += bytes;
  for (size_t i = held_before; i < held_.size(); ++i) {
    state_ = matcher_.step(state_, static_cast<uint8_t>(held_[i]));
    if (matcher_.match(state_) < 0) continue;
    stopped_ = true;
    matched_ = matcher_.match(state_);
    std::string released = held_.substr(0, i + 1 - matcher_.match_length(state_));
    held_.clear();
    return released;
  }
  std::string released = held_.substr(0, held_.size() - matcher_.suffix_length(state_));
  held_.erase(0, released.size());
  return released;
}

std::string StopStrings::finish() {
  std::string released = std::move(held_);
  held_.clear();
  state_ = 0;
  return released;
}

}  // namespace strata::text
