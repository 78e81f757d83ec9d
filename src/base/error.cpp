#include "base/error.h"

namespace strata {

const char* to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::Usage: return "usage";
    case ErrorKind::File: return "file";
    case ErrorKind::Format: return "format";
    case ErrorKind::Model: return "model";
    case ErrorKind::Argument: return "argument";
    case ErrorKind::Device: return "device";
    case ErrorKind::Memory: return "memory";
    case ErrorKind::Evidence: return "evidence";
    case ErrorKind::Interrupted: return "interrupted";
  }
  return "unknown";
}

int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::Usage: return 2;
    case ErrorKind::Evidence: return 3;
    case ErrorKind::Interrupted: return 130;
    default: return 1;
  }
}

namespace {
std::string one_line(const std::string& message, const std::string& where) {
  return where.empty() ? message : where + ": " + message;
}
}  // namespace

Error::Error(ErrorKind kind, const std::string& message, const std::string& where)
    : std::runtime_error(one_line(message, where)), kind_(kind), message_(message), where_(where) {}

}  // namespace strata
