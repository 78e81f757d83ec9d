// y = x · Wᵀ with dense or quantised weights. Contract: README.md in this folder.
#pragma once

#include "base/tensor.h"
#include "device/device.h"

namespace strata {

struct MatmulArgs {
  Tensor x;         // f32 [rows, in], rows may be strided
  Tensor weight;    // any dtype [out, in]
  Tensor bias;      // f32 [out], optional
  float scale = 1;  // multiplies the product, before the bias
  Tensor y;         // f32 [rows, out], rows may be strided
};

void matmul(Queue& queue, const MatmulArgs& args);

// float64: out [rows, out], contiguous. Weights enter as their decoded f32 values.
void matmul_oracle(const MatmulArgs& args, double* out);
// Bound on |error| of every element of y (README.md, Error): out [rows, out].
void matmul_bound(const MatmulArgs& args, double* out);

}  // namespace strata
