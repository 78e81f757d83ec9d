// Rows of gate_act on sixteen lanes, compiled once per instruction set.
#pragma once

#include <cstdint>

namespace strata {

struct GateRow {
  const float* gate;
  const float* value;  // null: 1
  float* y;
  int64_t count;
  bool silu, accumulate;
};
struct GateActKernel {
  void (*row)(const GateRow&);
};
extern const GateActKernel kGateActAvx2, kGateActAvx512;

}  // namespace strata
