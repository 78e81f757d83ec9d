// RMS norm over the last axis: y = x / sqrt(mean(x²) + eps) · weight. Contract: README.md in this folder.
#pragma once

#include "base/tensor.h"
#include "device/device.h"

namespace strata {

struct NormArgs {
  Tensor x;           // f32 [rows, groups, width], rows and groups may be strided
  Tensor weight;      // f32 [width], or [groups, width]
  float eps = 1e-6f;  // inside the root, on the mean
  Tensor y;           // f32 [rows, groups, width], may be x itself
};

void norm(Queue& queue, const NormArgs& args);

void norm_oracle(const NormArgs& args, double* out);  // float64 [rows, groups, width]
// Bound on |error| of every element (README.md, Error), in the oracle's order.
void norm_bound(const NormArgs& args, double* out);

}  // namespace strata
