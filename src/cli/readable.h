// Bytes of a model as text that JSON and terminals can hold.
#pragma once

#include <string>
#include <string_view>

#include "text/stream.h"

namespace strata::cli {

// Valid UTF-8: what can never be part of a character becomes U+FFFD.
inline std::string readable(std::string_view bytes) {
  text::Utf8Stream clean(true);
  return clean.push(bytes) + clean.finish();
}

}  // namespace strata::cli
