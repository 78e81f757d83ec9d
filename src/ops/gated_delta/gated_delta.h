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
  Tensor state;         // f32 [value_heads, dk, dv], in and out
  Tensor out;           // f32 [rows, value_heads, dv]
  int64_t stored = -1;  // rows after which the state is stored; -1: all. Later rows leave it alone
};

void gated_delta(Queue& queue, const GatedDeltaArgs& args);

// float64 [rows, value_heads, dv] and the state after the stored rows [value_heads, dk, dv], from the state before the
// call.
void gated_delta_oracle(const GatedDeltaArgs& args, double* out, double* state);
// Bounds on |error| of every element of both (README.md, Error) for arms that go back to the state every `chunk` rows:
// 1 is the recurrence; a larger chunk covers every smaller one.
void gated_delta_bound(const GatedDeltaArgs& args, int64_t chunk, double* out, double* state);

// The same rule with the state stored only at multiples of kDeltaChunk rows of its sequence. The rows since then lie in
// a ring of kDeltaChunk slots, slot = position mod kDeltaChunk.
inline constexpr int64_t kDeltaChunk = 64;

struct GatedDeltaAnchoredArgs {
  Tensor q;  // as above
  Tensor k;
  Tensor v;
  Tensor g;
  Tensor beta;
  HeadMapping mapping = HeadMapping::Grouped;
  int64_t first = 0;  // position of the first row in its sequence; slots below first mod kDeltaChunk are given
  Tensor state;       // f32 [value_heads, dk, dv], in and out: after the last multiple of kDeltaChunk rows
  Tensor ring_k;      // f32 [key_heads, kDeltaChunk, dk], in and out: normalised keys
  Tensor ring_u;      // f32 [value_heads, kDeltaChunk, dv], in and out: the corrections d of the recurrence
  Tensor ring_g;      // f32 [value_heads, kDeltaChunk], in and out: log decays
  Tensor out;         // f32 [rows, value_heads, dv]
};

void gated_delta_anchored(Queue& queue, const GatedDeltaAnchoredArgs& args);

// In float64, all shapes as above and contiguous. Slots at and behind the end of the last row are left alone.
struct GatedDeltaAnchoredValues {
  double *out, *state, *ring_k, *ring_u;
};
void gated_delta_anchored_oracle(const GatedDeltaAnchoredArgs& args, const GatedDeltaAnchoredValues& values);
void gated_delta_anchored_bound(const GatedDeltaAnchoredArgs& args, const GatedDeltaAnchoredValues& bounds);

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
void gated_delta_gates_bound(const GatedDeltaGatesArgs& args, double* g, double* beta);

}  // namespace strata
