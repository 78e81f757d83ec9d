#include "base/log.h"

namespace strata {
namespace {
constexpr std::string_view kNames[] = {"", "error", "warn", "info", "trace", "debug"};
}

std::optional<LogLevel> log_level_from_name(std::string_view name) {
  for (int level = 1; level <= 5; ++level)
    if (kNames[level] == name) return static_cast<LogLevel>(level);
  return std::nullopt;
}

void Log::write(LogLevel level, std::string_view message) {
  if (!enabled(level)) return;
  const std::string_view name = kNames[static_cast<int>(level)];
  const std::lock_guard lock(mutex_);
  std::fprintf(sink_, "%.*s: %.*s\n", static_cast<int>(name.size()), name.data(), static_cast<int>(message.size()),
               message.data());
}

}  // namespace strata
