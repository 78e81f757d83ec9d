// The CPU arms of this folder and what they share.
#pragma once

#include "ops/gated_delta/gated_delta.h"
#include "ops/gated_delta/kernels.h"

namespace strata {

void gated_delta_portable(Queue& queue, const GatedDeltaArgs& args);             // cpu.cpp
void gated_delta_gates_portable(Queue& queue, const GatedDeltaGatesArgs& args);  // cpu.cpp
void gated_delta_avx2(Queue& queue, const GatedDeltaArgs& args);                 // cpu_serial.cpp
void gated_delta_avx512(Queue& queue, const GatedDeltaArgs& args);               // cpu_serial.cpp
void gated_delta_wy_portable(Queue& queue, const GatedDeltaArgs& args);          // cpu_chunk.cpp, and all below
void gated_delta_wy_avx2(Queue& queue, const GatedDeltaArgs& args);
void gated_delta_wy_avx512(Queue& queue, const GatedDeltaArgs& args);
void gated_delta_anchored_portable(Queue& queue, const GatedDeltaAnchoredArgs& args);
void gated_delta_anchored_avx2(Queue& queue, const GatedDeltaAnchoredArgs& args);
void gated_delta_anchored_avx512(Queue& queue, const GatedDeltaAnchoredArgs& args);

inline int64_t stored_rows(const GatedDeltaArgs& args) { return args.stored < 0 ? args.q.extent(0) : args.stored; }
// The key head of a value head, and the value heads of a key head: index 0 .. value_heads / key_heads - 1.
int64_t key_head_of_arm(HeadMapping mapping, int64_t head, int64_t key_heads, int64_t value_heads);
int64_t value_head_of_arm(HeadMapping mapping, int64_t key_head, int64_t index, int64_t key_heads, int64_t value_heads);
// L2-normalised rows: out[h · head_stride + t · row_stride] from x [rows, heads, dk], times factor.
void normalise_rows(Queue& queue, const Tensor& x, float factor, void (*normalise)(const NormaliseRow&), float* out,
                    int64_t head_stride, int64_t row_stride);
float query_factor(int64_t dk);  // 1/sqrt(dk)

}  // namespace strata
