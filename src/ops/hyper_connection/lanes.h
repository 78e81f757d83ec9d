// Rows of hyper_read and hyper_write on sixteen lanes, compiled once per instruction set. Strides in elements.
#pragma once

#include <cstdint>

namespace strata {

struct HyperReadRow {
  const float *normed, *mix;  // [streams, count]
  int64_t normed_stride, mix_stride;
  float* u;
  int64_t streams, count;
};
struct HyperWriteRow {
  const float* block;
  float gate;
  float* x;
  int64_t count;
};
struct HyperKernel {
  void (*read)(const HyperReadRow&);
  void (*write)(const HyperWriteRow&);  // x += gate · block
};
extern const HyperKernel kHyperAvx2, kHyperAvx512;

}  // namespace strata
