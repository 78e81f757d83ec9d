// Rows in parts of sixteen lanes, the last of fewer.
#pragma once

#include <cstdint>

#include "base/simd.h"

namespace strata {
namespace {

// Calls visit(offset, lanes) for the 16-lane parts of n elements.
template <class Visit>
STRATA_SIMD void for_lanes(int64_t n, Visit visit) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) visit(i, int64_t{16});
  if (i < n) visit(i, n - i);
}
STRATA_SIMD F32x16 load_part(const float* p, int64_t n) { return n == 16 ? load16(p) : load16_first(p, n); }
STRATA_SIMD void store_part(float* p, F32x16 x, int64_t n) { n == 16 ? store16(p, x) : store16_first(p, x, n); }

}  // namespace
}  // namespace strata
