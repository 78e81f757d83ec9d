// Tiles of products by matrix units: 16 weight rows with up to 8 rows of x by all waves of a block, or 64 with 32 by
// each wave. Both give the same bits.
#pragma once

#include "ops/mma_kernel.h"

namespace strata::gpu {

// The waves of a block take chunks in turn. Shared memory: the stages of the waves, then [chunks][16][8] sums.
// row_of(i): the split row of the i-th row of x; put(i, column, sum).
template <class F, class RowOf, class Put>
__device__ inline void few_rows(const char* weight, int64_t weight_row, int64_t in, int64_t out, int64_t at,
                                const SplitRows& x, int count, RowOf row_of, Put put) {
  using Stage = WeightStage<F, 1, kFewStages>;
  const int waves = threads() / kWave;
  const Stage weights{shared_memory() + wave_index() * Stage::kBytes, weight_rows<F>(weight, weight_row, out, in, at)};
  auto* sums = reinterpret_cast<float*>(shared_memory() + waves * Stage::kBytes);
  multiply_chunks<F, 1, 1, kFewStages>(
      weights, in, wave_index(), waves, x, TileRows<1>(count, row_of), [&](int64_t chunk, const float(&s)[1][1][4]) {
        store_float4(sums + (chunk * kWave + lane()) * 4, {{s[0][0][0], s[0][0][1], s[0][0][2], s[0][0][3]}});
      });
  barrier();
  const int64_t chunks = (in + kChunk - 1) / kChunk;
  for (int i = thread(); i < 4 * kWave; i += threads()) {
    float sum = 0;
    for (int64_t chunk = 0; chunk < chunks; ++chunk) sum += sums[chunk * 4 * kWave + i];
    const int from = i / 4, part = i % 4, row = 2 * (from % 4) + part % 2;
    const int64_t column = at + 8 * (part / 2) + from / 4;
    if (row < count && column < out) put(row, column, sum);
  }
}

// A wave alone. Shared memory: its stage.
template <class F, class RowOf, class Put>
__device__ inline void many_rows(const char* weight, int64_t weight_row, int64_t in, int64_t out, int64_t at,
                                 const SplitRows& x, int count, RowOf row_of, Put put) {
  using Stage = WeightStage<F, kManyTiles, kManyStages>;
  const Stage weights{shared_memory() + wave_index() * Stage::kBytes, weight_rows<F>(weight, weight_row, out, in, at)};
  float total[kManyTiles][kManyColumns][4] = {};
  multiply_chunks<F, kManyTiles, kManyColumns, kManyStages>(
      weights, in, 0, 1, x, TileRows<kManyColumns>(count, row_of),
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
      for (int i = 0; i < 4; ++i) {
        const int row = 8 * eight + 2 * (lane() % 4) + i % 2;
        const int64_t column = at + 16 * tile + 8 * (i / 2) + lane() / 4;
        if (row < count && column < out) put(row, column, total[tile][eight][i]);
      }
}

}  // namespace strata::gpu
