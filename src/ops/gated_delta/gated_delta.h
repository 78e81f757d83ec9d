// The gated delta rule, one matrix state per value head. Contract and formula: README.md in this folder.
#pragma once

#include "base/tensor.h"
#include "device/device.h"

namespace strata {

// How value heads find their key head (models.md, section 8).
enum class HeadMapping {
  Grouped,  // key head = h / (value_heads / key_heads)
  Tiled,    // key head = h % key_heads
};

struct GatedDeltaArgs {
  Tensor q;     // f32 [rows, key_heads, dk], raw: the operator normalises; rows and heads may be strided
  Tensor k;     // f32 [rows, key_heads, dk], raw
  Tensor v;     // f32 [rows, value_heads, dv]
  Tensor g;     // f32 [rows, value_heads]: log decay, <= 0
  Tensor beta;  // f32 [rows, value_heads]
  HeadMapping mapping = HeadMapping::Grouped;
  Tensor state;  // f32 [value_heads, dk, dv], in and out
  Tensor out;    // f32 [rows, value_heads, dv]
};

void gated_delta(Queue& queue, const GatedDeltaArgs& args);

// float64 [rows, value_heads, dv] and the state after the rows [value_heads, dk, dv], from the state before the call.
void gated_delta_oracle(const GatedDeltaArgs& args, double* out, double* state);

// g = softplus(alpha + dt_bias) · a, a = -exp(A_log);  beta = sigmoid(b).
struct GatedDeltaGatesArgs {
  Tensor alpha;    // f32 [rows, value_heads], rows and heads may be strided
  Tensor b;        // f32 [rows, value_heads], rows and heads may be strided
  Tensor dt_bias;  // f32 [value_heads]
  Tensor a;        // f32 [value_heads], <= 0
  Tensor g;        // f32 [rows, value_heads]
  Tensor beta;     // f32 [rows, value_heads]
};

void gated_delta_gates(Queue& queue, const GatedDeltaGatesArgs& args);

void gated_delta_gates_oracle(const GatedDeltaGatesArgs& args, double* g, double* beta);

}  // namespace strata
