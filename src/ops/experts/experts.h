// Routed gated MLP: y_t = sum over the chosen experts of w · down_e( silu(gate_e x) · up_e x ). Contract: README.md.
#pragma once

#include "base/tensor.h"
#include "device/device.h"
#include "ops/weight_dot/rounded.h"

namespace strata {

struct ExpertsArgs {
  Tensor x;                                 // f32 [rows, hidden]
  Tensor ids;                               // i32 [rows, k], distinct in a row
  Tensor weights;                           // f32 [rows, k]
  Tensor gate;                              // any dtype [experts, inner, hidden]
  Tensor up;                                // any dtype [experts, inner, hidden]
  Tensor down;                              // any dtype [experts, hidden, inner]
  Tensor gate_scale, up_scale, down_scale;  // f32 [experts], optional: multiply the products
  Tensor y;                                 // f32 [rows, hidden]; summed in the order of the k slots
  // Int8: rows are rounded before they meet a matrix that is_rounded names, x as well as what is activated.
  Activations activations = Activations::F32;
};

void experts(Queue& queue, const ExpertsArgs& args);

void experts_oracle(const ExpertsArgs& args, double* out);  // float64 [rows, hidden]
// Bound on |error| of every element (README.md, Error), in the oracle's order.
void experts_bound(const ExpertsArgs& args, double* out);

}  // namespace strata
