// An element a thread: of the row that is read, or of one stream that is written.
#include "device/kernel_math.h"
#include "ops/hyper_connection/device_kernel.h"

using namespace strata;
using namespace strata::gpu;

extern "C" __global__ void hyper_read_rows(const HyperReadKernel a) {
  const int64_t row = block_x() / a.blocks, i = block_x() % a.blocks * threads() + thread();
  if (i >= a.hidden) return;
  float sum = 0;
  for (int64_t s = 0; s < a.streams; ++s) {
    const float gate = sigmoid_f32(a.mix[row * a.mix_row + s * a.mix_stream + i]);
    sum = add_f32(sum, mul_f32(gate, a.normed[row * a.normed_row + s * a.normed_stream + i]));
  }
  a.u[row * a.u_row + i] = div_f32(sum, static_cast<float>(a.streams));
}

extern "C" __global__ void hyper_write_rows(const HyperWriteKernel a) {
  const int64_t item = block_x() / a.blocks, row = item / a.streams, stream = item % a.streams;
  const int64_t i = block_x() % a.blocks * threads() + thread();
  if (i >= a.hidden) return;
  const float gate = mul_f32(2.0f, sigmoid_f32(a.inject[row * a.inject_row + stream]));
  float* x = a.x + row * a.x_row + stream * a.x_stream + i;
  *x = add_f32(*x, mul_f32(gate, a.block[row * a.block_row + i]));
}
