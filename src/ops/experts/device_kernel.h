// Internal to experts: what its kernels get, and the work of a call.
#pragma once

#include <cstdint>

namespace strata {

// (row, slot) pairs of one expert: pairs[first .. first + count).
struct ExpertTile {
  int32_t expert, first, count;
};

struct ExpertsGroup {
  const int32_t* ids;
  int64_t ids_row;      // elements
  int64_t pairs_count;  // rows · k
  int64_t k, experts;
  int64_t tiles_count;  // room
  int tile;             // pairs at most
  int32_t* pairs;       // row · k + slot
  ExpertTile* tiles;    // those behind the last have no pairs
};

struct ExpertMatrix {
  const char* weight;
  const float* scale;                 // of each expert; null: 1
  int64_t expert_stride, row_stride;  // bytes
  uint32_t type;
};

struct ExpertsKernel {
  const float* x;
  float* activated;  // [rows · k, inner]
  float* parts;      // [rows · k, hidden]
  const int32_t* pairs;
  const ExpertTile* tiles;
  ExpertMatrix gate, up, down;
  int64_t x_row, k, hidden, inner;
  int64_t tiles_count;
  bool aligned, activated_aligned;  // rows start at multiples of 16 bytes
};

// x, or what the gates let through, split for matrix units (ops/mma_kernel.h).
struct ExpertsSplit {
  const float* x;
  uint32_t* parts;
  float* sums;
  int64_t rows, padded, groups;
  int64_t x_row;  // elements
};

// y[pair] = matrix of the pair's expert · split row pair / pairs_a_row.
struct ExpertsProduct {
  uint32_t* parts;
  float* sums;
  int64_t padded;
  const int32_t* pairs;
  const ExpertTile* tiles;
  ExpertMatrix matrix;
  float* y;  // [pairs, out]
  int64_t in, out, tiles_count;
  int pairs_a_row;
};

// The same for tiles of one pair, of x as it is.
struct ExpertsOne {
  const float* x;
  const int32_t* pairs;
  const ExpertTile* tiles;
  ExpertMatrix matrix;
  float* y;       // [pairs, out]
  int64_t x_row;  // elements
  int64_t in, out, tiles_count;
  int pairs_a_row;
};

struct ExpertsGate {
  float* gate;  // becomes silu(gate) · up
  const float* up;
  int64_t elements;
};

struct ExpertsCombine {
  const float* parts;
  const int32_t* ids;
  const float* weights;
  float* y;
  int64_t ids_row, weights_row, y_row;  // elements
  int64_t k, experts, hidden, blocks;   // blocks of threads for each row
};

}  // namespace strata
