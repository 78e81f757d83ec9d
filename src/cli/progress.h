// A line on the terminal that overwrites itself, for what takes longer than two seconds.
#pragma once

#include <chrono>
#include <cstdio>
#include <string>

namespace strata::cli {

class Progress {
 public:
  explicit Progress(std::FILE* stream = stderr);  // shows nothing where the stream is no terminal
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Whether show() would write now: a caller may then compose the line.
  bool due() const;
  void show(const std::string& line);
  void clear();  // before anything else is written to the terminal

 private:
  using Clock = std::chrono::steady_clock;
  std::FILE* stream_;
  bool terminal_;
  size_t shown_ = 0;  // characters on the line
  Clock::time_point start_ = Clock::now(), last_{};
};

}  // namespace strata::cli
