// JSON files from outside: bounded in size and in nesting before a parser sees them.
#pragma once

#include <cstddef>
#include <string>

#include "base/json_text.h"

namespace strata::gguf::hf {

// Whole file, refused above `max_bytes` or above 64 levels of nesting.
std::string read_json_text(const std::string& path, size_t max_bytes);

}  // namespace strata::gguf::hf
