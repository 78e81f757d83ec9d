// What the vector kernels of this folder are given: plain pointers, strides in elements. One form each of AVX2 and
// AVX-512, the same bits in both.
#pragma once

#include <cstdint>

namespace strata {

inline constexpr int64_t kDeltaSlice = 64;  // columns of a state are independent: a slice is the unit of work

// x / sqrt(sum x² + 1e-6) · factor
struct NormaliseRow {
  const float* x;
  int64_t n;
  float factor;
  float* out;
};

// Rows 0 .. rows - 1 of the recurrence on `count` columns of one head.
struct SerialSlice {
  int64_t rows, dk, count;
  float* state;  // [dk, count]
  int64_t state_stride;
  const float *q, *k;  // [rows, dk], normalised
  int64_t key_stride;
  const float* v;  // [rows, count]
  int64_t v_stride;
  const float* decay;  // [rows]: e^g
  int64_t decay_stride;
  const float* beta;  // [rows]
  int64_t beta_stride;
  float* out;  // [rows, count]
  int64_t out_stride;
};

struct SerialKernels {
  void (*normalise)(const NormaliseRow&);
  void (*exp)(const float* x, int64_t n, float* out);
  void (*slice)(const SerialSlice&);
};

const SerialKernels& delta_serial_avx2();
const SerialKernels& delta_serial_avx512();

}  // namespace strata
