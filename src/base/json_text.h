// What must hold of JSON text before a recursive parser sees it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace strata {

// Error{Format} when brackets outside strings nest deeper than `limit`. Linear, no recursion.
void check_json_depth(std::string_view text, size_t limit, const std::string& where);

}  // namespace strata
