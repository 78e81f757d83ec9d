// Rows of causal_conv on sixteen lanes, compiled once per instruction set.
#pragma once

#include <cstdint>

namespace strata {

struct ConvRow {
  const float* const* x;  // [width]: the input that each tap meets
  const float* taps;      // [width, count]
  int64_t width;
  float* y;
  int64_t count;  // channels
};
struct CausalConvKernel {
  void (*row)(const ConvRow&);
};
extern const CausalConvKernel kCausalConvAvx2, kCausalConvAvx512;

}  // namespace strata
