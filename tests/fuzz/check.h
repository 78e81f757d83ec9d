// What every fuzz body asks of the code under test: a broken promise ends the process, which a fuzzer reports.
#pragma once

#include <cstdlib>

#include "base/error.h"

namespace strata::test {

inline void require(bool holds) {
  if (!holds) std::abort();
}

// An error is one line without control characters. Text of the input that it quotes must not break a terminal.
inline void require_one_line(const Error& error) {
  for (const char* c = error.what(); *c != '\0'; ++c) require(static_cast<unsigned char>(*c) >= 0x20 && *c != 0x7f);
}

}  // namespace strata::test
