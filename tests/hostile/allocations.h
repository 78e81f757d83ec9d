// Memory of this program: every operator new and every anonymous mapping is counted (allocations.cpp replaces them).
// Address space counts, touched or not. Under AddressSanitizer nothing is counted.
#pragma once

#include <cstddef>

namespace strata::test {

inline constexpr bool kAllocationsCounted =
#if defined(__SANITIZE_ADDRESS__)
    false;
#else
    true;
#endif

size_t allocated_bytes();  // now
size_t peak_bytes();       // highest since reset_peak()
void reset_peak();

}  // namespace strata::test
