#pragma once

#include <string>

namespace strata::cli {

// "0.1.0 (5ebe621)"; the commit is left out when the sources were built outside a git checkout, and ends in
// "-dirty" when tracked files differed from it.
std::string version_text();
std::string build_commit();  // "5ebe621", "" when unknown
int build_number();          // commits up to that one, 0 when unknown

}  // namespace strata::cli
