// Taps from the oldest to the newest, whichever kernel.
#include "device/kernel_math.h"
#include "ops/causal_conv/device_kernel.h"

using namespace strata;
using namespace strata::gpu;

namespace {

constexpr int kRunRows = 8, kRunTaps = 4;

__device__ inline Float4 input(const CausalConvKernel& a, int64_t t, int64_t c) {
  return load_float4(t < 0 ? a.history + (a.width - 1 + t) * a.history_row + c : a.x + t * a.x_row + c);
}

}  // namespace

// A channel of a row for each thread.
extern "C" __global__ void causal_conv_rows(const CausalConvKernel a) {
  const int64_t t = block_x() / a.blocks, c = block_x() % a.blocks * threads() + thread();
  if (c >= a.channels) return;
  const float* taps = a.kernel + c * a.kernel_row;
  const int64_t past = (a.width - 1) * a.dilation;
  float sum = 0;
  for (int64_t j = 0; j < a.width; ++j) {
    const int64_t source = t - (a.width - 1 - j) * a.dilation;
    const float x = source < 0 ? a.history[(past + source) * a.history_row + c] : a.x[source * a.x_row + c];
    sum = add_f32(sum, mul_f32(taps[j], x));
  }
  a.y[t * a.y_row + c] = silu_f32(sum);
}

// Four taps without dilation: eight rows of four channels for each thread, inputs in registers.
extern "C" __global__ void causal_conv_runs(const CausalConvKernel a) {
  const int64_t first = block_x() / a.blocks * kRunRows, c = (block_x() % a.blocks * threads() + thread()) * 4;
  if (c >= a.channels) return;
  Float4 taps[4], x[kRunTaps - 1 + kRunRows];
  STRATA_UNROLL
  for (int i = 0; i < 4; ++i) taps[i] = load_float4(a.kernel + (c + i) * a.kernel_row);
  STRATA_UNROLL
  for (int r = 0; r < kRunTaps - 1 + kRunRows; ++r) {
    const int64_t t = first - (kRunTaps - 1) + r;
    x[r] = input(a, t < a.rows ? t : a.rows - 1, c);
  }
  STRATA_UNROLL
  for (int r = 0; r < kRunRows; ++r) {
    if (first + r >= a.rows) return;
    Float4 y;
    STRATA_UNROLL
    for (int i = 0; i < 4; ++i) {
      float sum = 0;
      STRATA_UNROLL
      for (int j = 0; j < kRunTaps; ++j) sum = add_f32(sum, mul_f32(taps[i].v[j], x[r + j].v[i]));
      y.v[i] = silu_f32(sum);
    }
    store_float4(a.y + (first + r) * a.y_row + c, y);
  }
}
