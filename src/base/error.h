// The one exception type of Strata. Exceptions cross API boundaries only; inner loops do not throw.
#pragma once

#include <stdexcept>
#include <string>

namespace strata {

enum class ErrorKind {
  Usage,        // wrong flags or settings: exit code 2
  File,         // cannot open, read, write
  Format,       // malformed file
  Model,        // valid file, impossible or unsupported model
  Argument,     // an operator or API was called with wrong shapes or values
  Device,       // device missing or failing
  Memory,       // not enough memory
  Evidence,     // something asked for was not run: exit code 3
  Interrupted,  // stopped by the user: exit code 130
};

const char* to_string(ErrorKind kind);

// Process exit code that a command line returns for an error of this kind.
int exit_code(ErrorKind kind);

// One line: what happened, where (file and offset, operator and argument, setting), what to do. Control characters are
// written as \xNN and very long texts are cut.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message, const std::string& where = {});

  ErrorKind kind() const { return kind_; }
  const std::string& message() const { return message_; }
  const std::string& where() const { return where_; }

 private:
  ErrorKind kind_;
  std::string message_;
  std::string where_;
};

}  // namespace strata
