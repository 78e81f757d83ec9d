// Internal to hyper_read and hyper_write: what their kernels get. Strides in elements.
#pragma once

#include <cstdint>

namespace strata {

struct HyperReadKernel {
  const float *normed, *mix;
  float* u;
  int64_t streams, hidden;
  int64_t normed_row, normed_stream, mix_row, mix_stream, u_row;
  int64_t blocks;  // of threads for each row
  int32_t vector;
};

struct HyperWriteKernel {
  const float *block, *inject;
  float* x;
  int64_t streams, hidden;
  int64_t block_row, inject_row, x_row, x_stream;
  int64_t blocks;  // of threads for each (row, stream)
  int32_t vector;
};

}  // namespace strata
