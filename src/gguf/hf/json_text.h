// JSON files from outside: bounded in size and in nesting before a parser sees them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace strata::gguf::hf {

// Error{Format} when brackets outside strings nest deeper than `limit`. Linear, no recursion.
void check_json_depth(std::string_view text, size_t limit, const std::string& where);

// Whole file, refused above `max_bytes` or above 64 levels of nesting.
std::string read_json_text(const std::string& path, size_t max_bytes);

}  // namespace strata::gguf::hf
