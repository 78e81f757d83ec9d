// Plain structs between the operators that multiply rounded activations (rounded.h) with weights and the kernels that
// are compiled once per instruction set.
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace strata {

inline constexpr int64_t kPiece = 256;  // elements that are rounded, unpacked and padded together

// 256 elements of a row, zeros behind its end. `q` is in order for AVX2. For AVX-512 words of four elements lie at
// word_place; or transposed: element 16 h + 4 m + c at 64 c + 4 h + m, for types whose fields of bits come out of a
// register in that order. In both, products with four registers of levels add up to sums of sixteen elements in place.
struct alignas(64) Int8Piece {
  int8_t q[256];
  float scale[8];
  union {
    float sum[8];            // of types with minima: scale · sum of the block
    int32_t block_start[8];  // of others: where sums of unsigned levels begin: -offset · sum of the block
  };
  int32_t start[16];  // the same for 16 elements (half_slot)
};

// Bits of a block's largest magnitude: from the first on it is not finite, below the second (kSmallestRounded) the
// block becomes zeros.
inline constexpr int32_t kInfinityBits = 0x7f800000, kSmallestRoundedBits = (127 - 100) << 23;

// How integer sums of a type's levels become a product.
struct Int8Traits {
  int offset = 0;       // unsigned level - offset is the level
  bool halves = false;  // blocks of 16 have whole scales of their own
  bool minima = false;
  bool transposed = false;
};
Int8Traits int8_traits(DType type);  // of levels as AVX2 multiplies them, and of most for AVX-512

// Of 16 elements number h of a piece, in `start`: the order in which their sums come out of the registers.
inline constexpr int start_slot(int h) { return h % 2 * 4 + h / 8 * 8 + h % 8 / 2; }
inline constexpr int half_slot(int h, bool transposed) { return transposed ? h : start_slot(h); }
// Of the eight words of a block: registers of 64 bytes have two words of every block, where the sums of its halves go.
inline constexpr int word_place(int block, int word) { return 64 * (word % 4) + 4 * start_slot(2 * block + word / 4); }

// Weights as they are stored, streamed once.
struct Int8Few {
  const uint8_t* weights;  // row 0
  int64_t weight_stride;   // bytes
  int64_t count;           // weight rows
  int64_t in;              // elements, whole blocks
  const Int8Piece* const* x;
  int64_t rows;     // 1 .. few_rows
  float* const* y;  // y[t][i] = scale · sum of weight row i and x[t], + bias[i]
  float scale;
  const float* bias;  // null: none
  const void* grid;   // of lattice types
};

// Up to panel_columns weight rows, unpacked.
struct Int8Pack {
  const uint8_t* weights;
  int64_t weight_stride;
  int64_t count;
  int64_t in;
  const void* grid;
  char* panel;  // panel_bytes(in)
};

struct Int8Panel {
  const char* panel;  // `groups` of them, one behind the other
  int64_t groups, group_bytes;
  int64_t count;  // weight rows
  int64_t in;
  const Int8Piece* const* x;
  int64_t rows;
  float* const* y;
  int64_t column;  // y[t][column + i]
  float scale;
  const float* bias;
  Int8Traits traits;
  const uint8_t* ahead;  // what is packed next
  int64_t ahead_bytes;
};

using Int8FewFn = void (*)(const Int8Few&);
using Int8PackFn = void (*)(const Int8Pack&);

struct Int8Kernel {
  const void* (*grid)(DType type);  // the table of a lattice type that few and pack want (grid.h)
  Int8Traits (*traits)(DType type);
  int64_t few_rows;       // of x, that meet weights in registers as they are unpacked
  int64_t turns_rows;     // of x, up to which few_rows at a time do; more meet panels
  int64_t panel_columns;  // weight rows of one panel
  int64_t panel_groups;   // panels that lie in cache together
  int64_t block_bytes;    // of a panel for each block of 32 elements
  Int8FewFn (*few)(DType type);
  Int8PackFn (*pack)(DType type);
  void (*panel)(const Int8Panel&);
  // in / 256 pieces, rounded up.
  void (*round)(const float* x, int64_t in, Int8Traits traits, Int8Piece* pieces);
};

extern const Int8Kernel kInt8Avx2, kInt8Avx512Vnni, kInt8Avx512Vbmi;

}  // namespace strata
