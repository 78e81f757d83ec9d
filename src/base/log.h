// Levelled log on standard error. An object, not a global: every engine has its own.
#pragma once

#include <cstdio>
#include <mutex>
#include <optional>
#include <string_view>

namespace strata {

enum class LogLevel { Error = 1, Warn = 2, Info = 3, Trace = 4, Debug = 5 };

std::optional<LogLevel> log_level_from_name(std::string_view name);  // error, warn, info, trace, debug

class Log {
 public:
  explicit Log(LogLevel level = LogLevel::Info, std::FILE* sink = stderr) : level_(level), sink_(sink) {}

  void set_level(LogLevel level) { level_ = level; }
  bool enabled(LogLevel level) const { return level <= level_; }
  void write(LogLevel level, std::string_view message);  // one line; safe from several threads

  void error(std::string_view message) { write(LogLevel::Error, message); }
  void warn(std::string_view message) { write(LogLevel::Warn, message); }
  void info(std::string_view message) { write(LogLevel::Info, message); }
  void debug(std::string_view message) { write(LogLevel::Debug, message); }

 private:
  LogLevel level_;
  std::FILE* sink_;
  std::mutex mutex_;
};

}  // namespace strata
