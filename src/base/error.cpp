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

constexpr size_t kMaxText = 4096;

// Messages quote names from files and requests: whatever those hold, a message stays one line that is safe to print.
std::string printable(const std::string& text) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (const char c : text.substr(0, kMaxText)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f)
      out += c;
    else
      out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
  }
  return text.size() > kMaxText ? out + "..." : out;
}

std::string one_line(const std::string& message, const std::string& where) {
  return where.empty() ? message : where + ": " + message;
}

}  // namespace

Error::Error(ErrorKind kind, const std::string& message, const std::string& where)
    : std::runtime_error(one_line(printable(message), printable(where))),
      kind_(kind),
      message_(printable(message)),
      where_(printable(where)) {}

}  // namespace strata
