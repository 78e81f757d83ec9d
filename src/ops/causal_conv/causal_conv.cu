// A channel of a row for each thread, taps from the oldest to the newest.
#include "device/kernel_math.h"
#include "ops/causal_conv/device_kernel.h"

using namespace strata;
using namespace strata::gpu;

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
