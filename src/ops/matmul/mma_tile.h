// Tiles of y by matrix units: the kernels of matmul_mma*.cu, for one format each.
#pragma once

#include "ops/matmul/device_kernel.h"
#include "ops/mma_kernel.h"

namespace strata::gpu {

__device__ inline void put_result(const MatmulMma& a, int64_t row, int64_t column, float sum) {
  if (row >= a.rows || column >= a.out) return;
  const float product = mul_f32(sum, a.scale);
  a.y[row * a.y_row + column] = a.bias != nullptr ? add_f32(product, a.bias[column]) : product;
}

// Few rows: a block has 16 weight rows and 8 rows of x, its waves take chunks in turn. Shared memory: the stages of the
// waves, then [chunks][16][8] sums.
template <class F>
__device__ inline void matmul_few(const MatmulMma& a) {
  using Stage = WeightStage<F, 1, kFewStages>;
  const int waves = threads() / kWave;
  const int64_t column = block_x() % a.tiles * 8, at = block_x() / a.tiles * 16;
  const Stage weights{shared_memory() + wave_index() * Stage::kBytes, weight_rows(a.weight, a.weight_row, a.out, at)};
  auto* sums = reinterpret_cast<float*>(shared_memory() + waves * Stage::kBytes);
  multiply_chunks<F, 1, 1, kFewStages>(
      weights, a.in, wave_index(), waves, {a.parts, a.sums, a.padded}, column, a.rows,
      [&](int64_t chunk, const float(&of_chunk)[1][1][4]) {
        store_float4(sums + (chunk * kWave + lane()) * 4,
                     {{of_chunk[0][0][0], of_chunk[0][0][1], of_chunk[0][0][2], of_chunk[0][0][3]}});
      });
  barrier();
  const int64_t chunks = (a.in + kChunk - 1) / kChunk;
  for (int i = thread(); i < 4 * kWave; i += threads()) {
    float sum = 0;
    for (int64_t chunk = 0; chunk < chunks; ++chunk) sum += sums[chunk * 4 * kWave + i];
    const int from = i / 4, part = i % 4;
    put_result(a, column + 2 * (from % 4) + part % 2, at + 8 * (part / 2) + from / 4, sum);
  }
}

// Many rows: a wave has 64 weight rows and 32 rows of x.
template <class F>
__device__ inline void matmul_many(const MatmulMma& a) {
  using Stage = WeightStage<F, kManyTiles, kManyStages>;
  const int waves = threads() / kWave;
  const int64_t column = block_x() % a.tiles * 8 * kManyColumns;
  const int64_t at = (block_x() / a.tiles * waves + wave_index()) * Stage::kRows;
  if (at >= a.out) return;
  const Stage weights{shared_memory() + wave_index() * Stage::kBytes, weight_rows(a.weight, a.weight_row, a.out, at)};
  float total[kManyTiles][kManyColumns][4] = {};
  multiply_chunks<F, kManyTiles, kManyColumns, kManyStages>(
      weights, a.in, 0, 1, {a.parts, a.sums, a.padded}, column, a.rows,
      [&](int64_t, const float(&of_chunk)[kManyTiles][kManyColumns][4]) {
#pragma unroll
        for (int tile = 0; tile < kManyTiles; ++tile)
#pragma unroll
          for (int eight = 0; eight < kManyColumns; ++eight)
            for (int i = 0; i < 4; ++i) total[tile][eight][i] += of_chunk[tile][eight][i];
      });
#pragma unroll
  for (int tile = 0; tile < kManyTiles; ++tile)
#pragma unroll
    for (int eight = 0; eight < kManyColumns; ++eight)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        put_result(a, column + 8 * eight + 2 * (lane() % 4) + i % 2, at + 16 * tile + 8 * (i / 2) + lane() / 4,
                   total[tile][eight][i]);
}

}  // namespace strata::gpu
