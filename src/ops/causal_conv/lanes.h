// Rows of causal_conv on sixteen lanes, compiled once per instruction set.
#pragma once

#include <cstdint>

namespace strata {

struct ConvRow {
  const float* const* x;  // [width]: the input that each tap meets
  const float* taps;      // [width, count]; `four`: [count, 4], channels taps_step apart
  int64_t width;
  float* y;
  int64_t count;  // channels
  int64_t taps_step;
};
struct CausalConvKernel {
  void (*row)(const ConvRow&);
  void (*four)(const ConvRow&);  // four taps as they are stored, for calls too short to move them first
};
extern const CausalConvKernel kCausalConvAvx2, kCausalConvAvx512;

}  // namespace strata
