// Internal to norm: what the kernel of each instruction set gets.
#pragma once

#include <cstdint>

namespace strata {

struct NormRow {
  const float* x;       // [width]
  const float* weight;  // [width]
  float* y;             // [width], may be x
  int64_t width;
  float eps;
};

void norm_row_portable(const NormRow& row);
void norm_row_avx2(const NormRow& row);
void norm_row_avx512(const NormRow& row);

}  // namespace strata
