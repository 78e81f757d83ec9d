// y = x · Wᵀ with dense or quantised weights. Contract: README.md in this folder.
#pragma once

#include "base/tensor.h"
#include "device/device.h"
#include "ops/weight_dot/rounded.h"

namespace strata {

struct MatmulArgs {
  Tensor x;                                    // f32 [rows, in], rows may be strided
  Tensor weight;                               // any dtype [out, in]
  Tensor bias;                                 // f32 [out], optional
  float scale = 1;                             // multiplies the product, before the bias
  Tensor y;                                    // f32 [rows, out], rows may be strided
  Activations activations = Activations::F32;  // Int8: x is rounded first, for weights that is_rounded names
};

void matmul(Queue& queue, const MatmulArgs& args);

// float64: out [rows, out], contiguous. Weights enter as their decoded f32 values, x as `activations` says.
void matmul_oracle(const MatmulArgs& args, double* out);
// Bound on |error| of every element of y (README.md, Error): out [rows, out].
void matmul_bound(const MatmulArgs& args, double* out);

// How far x, rounded, may move the exact product of x as it is: out [rows, out].
void matmul_rounding(const MatmulArgs& args, double* out);

}  // namespace strata
