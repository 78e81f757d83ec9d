// Checked arithmetic for sizes that come from outside.
#pragma once

#include <cstdint>

namespace strata {

// Each returns false, leaving `out` unspecified, when the result does not fit in 64 bits.
[[nodiscard]] inline bool checked_mul(uint64_t a, uint64_t b, uint64_t& out) {
  return !__builtin_mul_overflow(a, b, &out);
}
[[nodiscard]] inline bool checked_add(uint64_t a, uint64_t b, uint64_t& out) {
  return !__builtin_add_overflow(a, b, &out);
}

}  // namespace strata
