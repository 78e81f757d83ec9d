// Reading from and writing to the n residual streams of hyper-connections. Contract: README.md in this folder.
#pragma once

#include "base/tensor.h"
#include "device/device.h"

namespace strata {

// u = mean over streams of sigmoid(mix) · normed
struct HyperReadArgs {
  Tensor normed;  // f32 [rows, streams, hidden]
  Tensor mix;     // f32 [rows, streams, hidden]: logits of the read gates
  Tensor u;       // f32 [rows, hidden]
};
void hyper_read(Queue& queue, const HyperReadArgs& args);
void hyper_read_oracle(const HyperReadArgs& args, double* out);  // float64 [rows, hidden]
// Bounds on |error| of every element (README.md, Error), in the oracles' order.
void hyper_read_bound(const HyperReadArgs& args, double* out);

// x_s += 2 sigmoid(inject_s) · block
struct HyperWriteArgs {
  Tensor block;   // f32 [rows, hidden]: output of a mixer or an MLP
  Tensor inject;  // f32 [rows, streams]: logits
  Tensor x;       // f32 [rows, streams, hidden], in and out
};
void hyper_write(Queue& queue, const HyperWriteArgs& args);
void hyper_write_oracle(const HyperWriteArgs& args, double* out);  // float64 [rows, streams, hidden]; x before the call
void hyper_write_bound(const HyperWriteArgs& args, double* out);

}  // namespace strata
