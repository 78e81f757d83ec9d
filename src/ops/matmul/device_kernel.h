// Internal to matmul: what its kernels get.
#pragma once

#include <cstdint>

namespace strata {

struct MatmulKernel {
  const float* x;
  const char* weight;
  const float* bias;  // null: none
  float* y;
  int64_t rows, in, out;
  int64_t x_row, y_row;  // elements from one row to the next
  int64_t weight_row;    // bytes
  int64_t tiles;         // of rows
  uint32_t type;
  bool aligned;  // rows of x start at multiples of 16 bytes
  float scale;
};

// x split for matrix units (ops/mma_kernel.h).
struct MatmulSplit {
  const float* x;
  uint32_t* parts;
  float* sums;
  int64_t rows, padded, groups;
  int64_t x_row;  // elements
};

struct MatmulMma {
  uint32_t* parts;
  float* sums;
  int64_t padded;
  const char* weight;
  const float* bias;  // null: none
  float* y;
  int64_t rows, in, out;
  int64_t y_row;       // elements
  int64_t weight_row;  // bytes
  int64_t tiles;       // of rows
  float scale;
};

// One row of x, or tiles of eight, by the kernels of ops/mma_one.h.
struct MatmulOne {
  const float* x;   // one row
  uint32_t* parts;  // else split
  float* sums;
  const char* weight;
  const float* bias;  // null: none
  float* y;
  int64_t rows, in, out;
  int64_t y_row;       // elements
  int64_t weight_row;  // bytes
  int64_t tiles;       // of rows of x
  float scale;
};
struct MatmulOneSplit {
  const float* x;
  uint32_t* parts;
  float* sums;
  int64_t rows, groups;
  int64_t x_row;  // elements
};

}  // namespace strata
