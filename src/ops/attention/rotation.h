// The rotation of a 4-bit cache: an orthonormal transform of each head that spreads a large channel over many, so that
// the scale of a block fits all its values. Rotated queries meet rotated keys with the same scores; the mean of rotated
// values is the rotated mean. Contract and bound: README.md in this folder.
#pragma once

#include "base/tensor.h"
#include "device/device.h"

namespace strata {

// Channels that are mixed with each other: the largest power of two that divides dim, at most 256.
int64_t rotation_block(int64_t dim);

// x f32 [rows, heads, dim] in place, rows and heads may be strided; its own inverse. Every head by itself: in each
// block of n channels, y_i = Σ_j (-1)^popcount(i & j) x_j / sqrt(n).
void rotate_heads(Queue& queue, const Tensor& x);

// float64, of one head of dim values; and the bound on |error| of each.
void rotation_oracle(const float* x, int64_t dim, double* y);
void rotation_bound(const float* x, int64_t dim, double* bound);

}  // namespace strata
