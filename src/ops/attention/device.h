// Internal to attention and sparse_attention: both on accelerators.
#pragma once

#include <string>

#include "ops/attention/softmax.h"

namespace strata {

// Any types and sizes: f32 fused multiply-adds.
void cell_attention_fma(Queue& queue, const char* op, const CellAttention& args);

// 16-bit keys and values of one type on matrix units; why it cannot take these arguments.
void cell_attention_mma(Queue& queue, const char* op, const CellAttention& args);
std::string cell_attention_mma_refusal(const CellAttention& args);

// The same behind copies that run ahead.
void cell_attention_stream(Queue& queue, const char* op, const CellAttention& args);
std::string cell_attention_stream_refusal(const CellAttention& args);

}  // namespace strata
