// Opening of GGUF bytes that are to be refused.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "gguf/gguf.h"
#include "support/test_files.h"

namespace strata::test {

// What opening raises, empty when it succeeds. Any other exception fails the test, and so does an error that is not one
// line of printable text.
inline std::optional<Error> open_error(const std::string& path, const gguf::Limits& limits = {}) {
  try {
    gguf::File::open(path, limits);
    return std::nullopt;
  } catch (const Error& error) {
    const std::string text = error.what();
    for (const char c : text) EXPECT_TRUE(c >= 0x20 && c < 0x7f) << "unprintable byte in: " << text;
    EXPECT_LT(text.size(), 1000u);
    EXPECT_TRUE(error.kind() == ErrorKind::Format || error.kind() == ErrorKind::File) << text;
    return error;
  } catch (const std::exception& other) {
    ADD_FAILURE() << "not an Error: " << other.what();
    return std::nullopt;
  }
}

inline std::optional<Error> bytes_error(std::string_view bytes, const gguf::Limits& limits = {}) {
  const MemoryFile memory(bytes);
  return open_error(memory.path(), limits);
}

}  // namespace strata::test
