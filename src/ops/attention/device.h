// Internal to attention and sparse_attention: both on accelerators.
#pragma once

#include "ops/attention/softmax.h"

namespace strata {

// Any types and sizes: f32 fused multiply-adds.
void cell_attention_fma(Queue& queue, const char* op, const CellAttention& args);

}  // namespace strata
