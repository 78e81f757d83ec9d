// The kernels of matmul_mma*.cu, for one format each.
#pragma once

#include "ops/matmul/device_kernel.h"
#include "ops/mma_one.h"
#include "ops/mma_tile.h"

namespace strata::gpu {

template <bool kMany, class F>
__device__ inline void matmul_tile(const MatmulMma& a) {
  constexpr int kTile = kMany ? 8 * kManyColumns : 8;
  const auto first = static_cast<int>(block_x() % a.tiles * kTile);
  const auto left = static_cast<int>(a.rows) - first;
  const int count = left < kTile ? left : kTile;
  const SplitRows x{a.parts, a.sums, a.padded};
  auto row_of = [&](int i) { return first + i; };
  auto put = [&](int row, int64_t column, float sum) {
    const float product = mul_f32(sum, a.scale);
    a.y[(first + row) * a.y_row + column] = a.bias != nullptr ? add_f32(product, a.bias[column]) : product;
  };
  if constexpr (kMany) {
    const int64_t at = (block_x() / a.tiles * (threads() / kWave) + wave_index()) * 16 * kManyTiles;
    if (at < a.out) many_rows<F>(a.weight, a.weight_row, a.in, a.out, at, x, count, row_of, put);
  } else {
    few_rows<F>(a.weight, a.weight_row, a.in, a.out, block_x() / a.tiles * 16, x, count, row_of, put);
  }
}
template <class F>
__device__ inline void matmul_few(const MatmulMma& a) {
  matmul_tile<false, F>(a);
}
template <class F>
__device__ inline void matmul_many(const MatmulMma& a) {
  matmul_tile<true, F>(a);
}

template <bool kAlone, class F>
__device__ inline void matmul_stream(const MatmulOne& a) {
  const auto blocks = static_cast<int>(blocks_x() / a.tiles), block = static_cast<int>(block_x() / a.tiles);
  const int64_t row = block_x() % a.tiles * 8, left = a.rows - row, groups = a.in / 32;
  stream_rows<F, kAlone>(a.weight, a.weight_row, a.in, a.out, a.x,
                         {a.parts + row * groups * kOneWords, a.sums + row * groups, static_cast<int>(groups)},
                         static_cast<int>(left < 8 ? left : 8), block, blocks,
                         static_cast<int>(((a.out + 15) / 16 - block + blocks - 1) / blocks),
                         [&](int row_of_tile, int64_t column, float sum) {
                           const float product = mul_f32(sum, a.scale);
                           a.y[(row + row_of_tile) * a.y_row + column] =
                               a.bias != nullptr ? add_f32(product, a.bias[column]) : product;
                         });
}
template <class F>
__device__ inline void matmul_one(const MatmulOne& a) {
  matmul_stream<true, F>(a);
}
template <class F>
__device__ inline void matmul_eight(const MatmulOne& a) {
  matmul_stream<false, F>(a);
}

}  // namespace strata::gpu
