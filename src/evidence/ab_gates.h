// Gates as text: "prefill@128k>=+5%", "decode>=-3%", "holdout prefill@64k>=+2.5%". k is 1024.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/ab.h"

namespace strata {

// Gates separated by commas; `where` names their source in errors. Error{Usage} with the position of what is not
// understood.
std::vector<AbGate> parse_gates(std::string_view text, const std::string& where);
// "1k,4096,128K": ascending, each once. Error{Usage} as above.
std::vector<int64_t> parse_lengths(std::string_view text, const std::string& where);

std::string to_text(const AbGate& gate);  // as parse_gates() reads it
std::string length_text(int64_t length);  // "128K" where it is a multiple of 1024, else "1000"
std::string change_text(double ratio);    // "+8.7 %"; "-" when infinite

}  // namespace strata
