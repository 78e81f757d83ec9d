// The kernels of experts_mma*.cu, for one format each: products of one matrix of the experts.
#pragma once

#include "ops/experts/device_kernel.h"
#include "ops/mma_one.h"
#include "ops/mma_tile.h"

namespace strata::gpu {

template <bool kMany, class F>
__device__ inline void product_tile(const ExpertsProduct& a) {
  const ExpertTile tile = a.tiles[block_x() % a.tiles_count];
  if (tile.count == 0) return;
  const int32_t* pairs = a.pairs + tile.first;
  const char* weight = a.matrix.weight + tile.expert * a.matrix.expert_stride;
  const float scale = a.matrix.scale != nullptr ? a.matrix.scale[tile.expert] : 1.0f;
  const SplitRows x{a.parts, a.sums, a.padded};
  // Pairs of one row share its x; behind the last pair any row will do.
  auto row_of = [&](int i) { return pairs[i < tile.count ? i : 0] / a.pairs_a_row; };
  auto put = [&](int row, int64_t column, float sum) { a.y[pairs[row] * a.out + column] = mul_f32(sum, scale); };
  if constexpr (kMany) {
    const int64_t at = (block_x() / a.tiles_count * (threads() / kWave) + wave_index()) * 16 * kManyTiles;
    if (at < a.out) many_rows<F>(weight, a.matrix.row_stride, a.in, a.out, at, x, tile.count, row_of, put);
  } else {
    few_rows<F>(weight, a.matrix.row_stride, a.in, a.out, block_x() / a.tiles_count * 16, x, tile.count, row_of, put);
  }
}
template <class F>
__device__ inline void product_few(const ExpertsProduct& a) {
  product_tile<false, F>(a);
}
template <class F>
__device__ inline void product_many(const ExpertsProduct& a) {
  product_tile<true, F>(a);
}

template <class F>
__device__ inline void product_one(const ExpertsOne& a) {
  const ExpertTile tile = a.tiles[block_x() % a.tiles_count];
  if (tile.count == 0) return;
  const int64_t pair = a.pairs[tile.first];
  const auto first = static_cast<int>(block_x() / a.tiles_count);
  const auto step = static_cast<int>(blocks_x() / a.tiles_count);
  const char* weight = a.matrix.weight + tile.expert * a.matrix.expert_stride;
  const float scale = a.matrix.scale != nullptr ? a.matrix.scale[tile.expert] : 1.0f;
  const auto tiles = static_cast<int>(((a.out + 15) / 16 - first + step - 1) / step);
  one_row<F>(weight, a.matrix.row_stride, a.in, a.out, a.x + pair / a.pairs_a_row * a.x_row, first, step, tiles,
             [&](int64_t column, float sum) { a.y[pair * a.out + column] = mul_f32(sum, scale); });
}

}  // namespace strata::gpu
