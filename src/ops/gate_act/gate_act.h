// Elementwise products with an activated gate, and the plain residual. Contract: README.md in this folder.
#pragma once

#include "base/tensor.h"
#include "device/device.h"

namespace strata {

enum class Activation { Silu, Sigmoid };

struct GateActArgs {
  Tensor gate;   // f32 [rows, groups, width], or [rows, groups, 1]: one gate a group; rows and groups may be strided
  Tensor value;  // f32 [rows, groups, width], optional (1): rows and groups may be strided
  Activation activation = Activation::Silu;
  bool accumulate = false;  // y += ... instead of y = ...
  Tensor y;                 // f32 [rows, groups, width], may be gate or value
};

// y = value · activation(gate)
void gate_act(Queue& queue, const GateActArgs& args);

void gate_act_oracle(const GateActArgs& args, double* out);  // float64 [rows, groups, width]; y as it was before
// Bound on |error| of every element (README.md, Error), in the oracle's order.
void gate_act_bound(const GateActArgs& args, double* out);

// x += y, both f32 of the same shape, contiguous.
void residual_add(Queue& queue, const Tensor& x, const Tensor& y);
// What its arms get: both as f32 [elements].
struct ResidualAddArgs {
  Tensor x, y;
};

}  // namespace strata
