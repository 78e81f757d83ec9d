// Internal to gate_act and residual_add: what their kernels get. Strides in elements.
#pragma once

#include <cstdint>

namespace strata {

struct GateActKernel {
  const float *gate, *value;  // value may be null
  float* y;
  int64_t groups, width;
  int64_t gate_row, gate_group, value_row, value_group, y_row, y_group;
  int64_t blocks;  // of threads for each (row, group)
  int32_t one_gate, silu, accumulate, vector;
};

struct ResidualAddKernel {
  float* x;
  const float* y;
  int64_t elements;
  int32_t vector;
};

}  // namespace strata
