// Depthwise causal convolution with SiLU. Contract: README.md in this folder.
#pragma once

#include "base/tensor.h"
#include "device/device.h"

namespace strata {

struct CausalConvArgs {
  Tensor x;        // f32 [rows, channels]
  Tensor history;  // f32 [(width - 1) · dilation, channels]: the inputs before the first row, oldest first
  Tensor kernel;   // f32 [channels, width], tap 0 is the oldest
  int dilation = 1;
  Tensor y;  // f32 [rows, channels], not x
};

void causal_conv(Queue& queue, const CausalConvArgs& args);

void causal_conv_oracle(const CausalConvArgs& args, double* out);  // float64 [rows, channels]
// Bound on |error| of every element (README.md, Error), in the oracle's order.
void causal_conv_bound(const CausalConvArgs& args, double* out);

// Shifts the rows of x into the history: afterwards it holds the last inputs, oldest first.
void push_history(const Tensor& x, const Tensor& history);

}  // namespace strata
