// A wave for each element of a row of y, or for the same element of four rows.
#include "ops/dot_kernel.h"
#include "ops/matmul/device_kernel.h"

using namespace strata;
using namespace strata::gpu;

namespace {

template <int kRows>
__device__ inline void matmul_tile(const MatmulKernel& a) {
  const int64_t tile = block_x() % a.tiles, column = block_x() / a.tiles * (threads() / kWave) + wave_index();
  if (column >= a.out) return;
  const float* x[kRows];
  for (int r = 0; r < kRows; ++r) {
    const int64_t row = tile * kRows + r;
    x[r] = a.x + (row < a.rows ? row : a.rows - 1) * a.x_row;
  }
  float sums[kRows];
  dot_rows(a.type, a.weight + column * a.weight_row, x, a.aligned, a.in, sums);
  if (lane() != 0) return;
  for (int r = 0; r < kRows; ++r) {
    const int64_t row = tile * kRows + r;
    if (row >= a.rows) break;
    const float product = mul_f32(sums[r], a.scale);
    a.y[row * a.y_row + column] = a.bias != nullptr ? add_f32(product, a.bias[column]) : product;
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(128) matmul_f32_1(const MatmulKernel a) { matmul_tile<1>(a); }
extern "C" __global__ void __launch_bounds__(128) matmul_f32_4(const MatmulKernel a) { matmul_tile<4>(a); }
