// Random problems of the gated delta rule, for its parity cases and tests.
#pragma once

#include "base/random.h"
#include "ops/gated_delta/gated_delta.h"

namespace strata {

struct GatedDeltaShape {
  int64_t rows, key_heads, value_heads, dk, dv;
  HeadMapping mapping = HeadMapping::Grouped;
};

// Gates of a head.
enum class GateKind { Mild, Moderate, Strong, Reset, NoDecay, Minus30, Minus88, Edge, Clear, Count };
inline constexpr int kGateKinds = static_cast<int>(GateKind::Count);

const char* name_of(GateKind kind);
float random_gate(GateKind kind, int64_t t, Random& random);
float random_beta(GateKind kind, Random& random);

// The kind of head h when every head has its own.
inline GateKind mixed_gates(int64_t head, uint64_t seed) {
  return static_cast<GateKind>((static_cast<uint64_t>(head) + seed) % kGateKinds);
}

// Heads [heads, width] of every row, from element `first` of the rows of `packed` on.
Tensor heads_view(const Tensor& packed, int64_t first, int64_t heads, int64_t width);

// One head vector [width]: sizes at which the eps counts, ordinary and large ones, rarely all zeros.
void fill_key(const Tensor& row, Random& random);

}  // namespace strata
