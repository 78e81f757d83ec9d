// Lines that a person types: with editing and history on a terminal (libedit), plain elsewhere.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace strata::cli {

class LineInput {
 public:
  explicit LineInput(std::string prompt);
  ~LineInput();
  LineInput(const LineInput&) = delete;
  LineInput& operator=(const LineInput&) = delete;

  // The next line without its end; empty at the end of the input or after Ctrl-C. Error{File} when reading fails, or
  // for a line of over a mebibyte.
  std::optional<std::string> next();

 private:
  struct Editor;
  std::unique_ptr<Editor> editor_;  // absent when standard input or output is no terminal
  std::string prompt_;
};

}  // namespace strata::cli
