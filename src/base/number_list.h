// Lists of whole numbers as people type them: "1,2,8", "0-8", "0-4096+1024", "1-64*2".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace strata {

inline constexpr size_t kMaxListed = 4096;  // numbers that one list may have

// Appends the numbers of `text`: single ones and ranges, both ends included, by steps (+n, 1 when not given) or factors
// (*n). Returns what is wrong with it; empty: nothing.
std::string append_numbers(std::string_view text, std::vector<int64_t>& numbers);

}  // namespace strata
