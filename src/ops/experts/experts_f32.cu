// Routed experts in f32: pairs of (row, slot) grouped by expert on the device, then a wave for each inner (hidden)
// index of a tile of pairs, then the sum over slots. Where a pair lies in its group does not change its bits.
#include "device/kernel_math.h"
#include "ops/dot_kernel.h"
#include "ops/experts/device_kernel.h"

using namespace strata;
using namespace strata::gpu;

namespace {

__device__ inline bool is_expert(int32_t id, int64_t experts) { return id >= 0 && id < experts; }

// Exclusive sums of counts[0 .. n) in place, by the first wave; gives the total. Of tiles: of the counts in tiles.
__device__ inline uint32_t scan(uint32_t* counts, int n) {
  uint32_t total = 0;
  for (int first = 0; first < n; first += kWave) {
    const int i = first + lane();
    const uint32_t own = i < n ? counts[i] : 0;
    uint32_t sum = own;
    for (int step = 1; step < kWave; step *= 2) {
      const uint32_t below = shuffle_up(sum, step);
      if (lane() >= step) sum += below;
    }
    if (i < n) counts[i] = total + sum - own;
    total += shuffle(sum, kWave - 1);
  }
  return total;
}

struct TileOf {
  int64_t expert;
  const int32_t* pairs;
  int count;
};
__device__ inline TileOf tile_of(const ExpertsKernel& a) {
  const ExpertTile tile = a.tiles[block_x() % a.tiles_count];
  return {tile.expert, a.pairs + tile.first, tile.count};
}

__device__ inline const char* row_of(const ExpertMatrix& m, int64_t expert, int64_t row) {
  return m.weight + expert * m.expert_stride + row * m.row_stride;
}
__device__ inline float scaled(float product, const ExpertMatrix& m, int64_t expert) {
  return m.scale == nullptr ? product : mul_f32(product, m.scale[expert]);
}

template <int kRows>
__device__ inline void activate(const ExpertsKernel& a) {
  const TileOf tile = tile_of(a);
  const int64_t index = block_x() / a.tiles_count * (threads() / kWave) + wave_index();
  if (index >= a.inner || tile.count == 0) return;
  for (int first = 0; first < tile.count; first += kRows) {
    const int32_t* pairs = tile.pairs + first;
    const int count = tile.count - first;
    const float* x[kRows];
    for (int r = 0; r < kRows; ++r) x[r] = a.x + pairs[r < count ? r : 0] / a.k * a.x_row;
    float gate[kRows] = {}, up[kRows] = {};
    for (int side = 0; side < 2; ++side) {  // one copy of the code of all formats
      const ExpertMatrix& matrix = side == 0 ? a.gate : a.up;
      float sums[kRows];
      dot_rows(matrix.type, row_of(matrix, tile.expert, index), x, a.aligned, a.hidden, sums);
      for (int r = 0; r < kRows; ++r) side == 0 ? gate[r] = sums[r] : up[r] = sums[r];
    }
    if (lane() != 0) continue;
    for (int r = 0; r < kRows; ++r)
      if (r < count)
        a.activated[pairs[r] * a.inner + index] =
            mul_f32(silu_f32(scaled(gate[r], a.gate, tile.expert)), scaled(up[r], a.up, tile.expert));
  }
}

template <int kRows>
__device__ inline void project(const ExpertsKernel& a) {
  const TileOf tile = tile_of(a);
  const int64_t index = block_x() / a.tiles_count * (threads() / kWave) + wave_index();
  if (index >= a.hidden || tile.count == 0) return;
  for (int first = 0; first < tile.count; first += kRows) {
    const int32_t* pairs = tile.pairs + first;
    const int count = tile.count - first;
    const float* x[kRows];
    for (int r = 0; r < kRows; ++r) x[r] = a.activated + pairs[r < count ? r : 0] * a.inner;
    float sums[kRows];
    dot_rows(a.down.type, row_of(a.down, tile.expert, index), x, a.activated_aligned, a.inner, sums);
    if (lane() != 0) continue;
    for (int r = 0; r < kRows; ++r)
      if (r < count) a.parts[pairs[r] * a.hidden + index] = scaled(sums[r], a.down, tile.expert);
  }
}

}  // namespace

// One block: counts, their sums, places. Shared: two words for each expert, and one.
extern "C" __global__ void experts_group(const ExpertsGroup a) {
  auto* first = reinterpret_cast<uint32_t*>(shared_memory());
  const int experts = static_cast<int>(a.experts);
  uint32_t* next = first + experts + 1;
  for (int e = thread(); e <= experts; e += threads()) first[e] = 0;
  for (int64_t i = thread(); i < a.tiles_count; i += threads()) a.tiles[i] = {0, 0, 0};
  barrier();
  for (int64_t pair = thread(); pair < a.pairs_count; pair += threads())
    if (const int32_t id = a.ids[pair / a.k * a.ids_row + pair % a.k]; is_expert(id, a.experts))
      atomic_add(first + id, 1);
  barrier();
  for (int e = thread(); e < experts; e += threads()) next[e] = (first[e] + a.tile - 1) / a.tile;
  barrier();
  if (wave_index() == 0) {
    (void)scan(next, experts);
    const uint32_t total = scan(first, experts);
    if (lane() == 0) first[experts] = total;
  }
  barrier();
  for (int e = thread(); e < experts; e += threads()) {
    const auto tile_size = static_cast<uint32_t>(a.tile);
    uint32_t tile = next[e];
    for (uint32_t at = first[e]; at < first[e + 1]; at += a.tile, ++tile) {
      const uint32_t left = first[e + 1] - at;
      a.tiles[tile] = {e, static_cast<int32_t>(at), static_cast<int32_t>(left < tile_size ? left : tile_size)};
    }
    next[e] = first[e];
  }
  barrier();
  for (int64_t pair = thread(); pair < a.pairs_count; pair += threads())
    if (const int32_t id = a.ids[pair / a.k * a.ids_row + pair % a.k]; is_expert(id, a.experts))
      a.pairs[atomic_add(next + id, 1)] = static_cast<int32_t>(pair);
}

extern "C" __global__ void __launch_bounds__(128) experts_activate_1(const ExpertsKernel a) { activate<1>(a); }
extern "C" __global__ void __launch_bounds__(128) experts_activate_4(const ExpertsKernel a) { activate<4>(a); }
extern "C" __global__ void __launch_bounds__(128) experts_project_1(const ExpertsKernel a) { project<1>(a); }
extern "C" __global__ void __launch_bounds__(128) experts_project_4(const ExpertsKernel a) { project<4>(a); }

// Slots in their order. An id that is no expert makes its row NaN: the host has not seen it.
extern "C" __global__ void experts_combine(const ExpertsCombine a) {
  const int64_t row = block_x() / a.blocks, i = block_x() % a.blocks * threads() + thread();
  if (i >= a.hidden) return;
  float sum = 0;
  for (int64_t slot = 0; slot < a.k; ++slot) {
    const bool known = is_expert(a.ids[row * a.ids_row + slot], a.experts);
    const float part = known ? a.parts[(row * a.k + slot) * a.hidden + i] : f32_of_bits(0x7fc00000u);
    sum = add_f32(sum, mul_f32(a.weights[row * a.weights_row + slot], part));
  }
  a.y[row * a.y_row + i] = sum;
}
