// Plain structs between the operators that multiply rows of f32 with rows of weights (rows.h) and the kernels that are
// compiled once per instruction set.
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace strata {

// A sum begins anew every so many elements and is added to the sums before: the results' bits depend on it.
inline constexpr int64_t kDotChunk = 1024;
inline constexpr int64_t kPanelRows = 24;                // decoded weight rows that lie in cache together at most
inline constexpr int64_t kNarrowRows = 8;                // of them, where few rows of x meet them
inline constexpr int64_t kPanelStride = kDotChunk + 16;  // floats; not a power of two: rows lie in different cache sets

// Weights as they are stored, streamed once.
struct DotFew {
  const uint8_t* weights;  // row 0
  int64_t weight_stride;   // bytes
  int64_t count;           // weight rows
  int64_t in;              // elements, whole blocks
  const float* const* x;   // 1 .. few_rows rows
  int64_t rows;
  float* const* y;  // y[t][i] = scale · sum of weight row i and x[t], + bias[i]
  float scale;
  const float* bias;  // null: none
  const void* grid;   // of lattice types (gguf/iq_grids.h)
};

// Decoded weights, one chunk of the elements.
struct DotPanel {
  const float* weights;   // [count, kPanelStride]
  int64_t count;          // weight rows
  int64_t terms;          // elements of this chunk; weights are zero from there to the next multiple of 16
  const float* const* x;  // rows
  int64_t first;          // element of x that meets the first of the weights
  int64_t rows;
  float* const* y;  // y[t][column + i] = the sum, or plus it
  int64_t column;
  bool add;
};

using DotFewFn = void (*)(const DotFew&);
// Decodes whole blocks of `elements` to f32, as gguf/quant.h says, bit for bit; asks for what lies `ahead` bytes
// behind.
using DotDecodeFn = void (*)(const void* blocks, float* out, int64_t elements, const void* grid, int64_t ahead);

struct WeightDotKernel {
  int64_t few_rows;                   // of x, that meet weights in registers as they are decoded
  DotFewFn (*few)(DType type);        // null: the type has none
  DotDecodeFn (*decode)(DType type);  // null: the type has none
  void (*panel)(const DotPanel&);
  // out = silu(gate) · up
  void (*activate)(const float* gate, const float* up, float* out, int64_t count);
};

extern const WeightDotKernel kWeightDotAvx2, kWeightDotAvx512;

}  // namespace strata
