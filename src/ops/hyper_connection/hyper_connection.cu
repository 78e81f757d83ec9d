// Four elements a thread: of the row that is read, or of one stream that is written.
#include "device/kernel_math.h"
#include "ops/device_fours.h"
#include "ops/hyper_connection/device_kernel.h"

using namespace strata;
using namespace strata::gpu;

extern "C" __global__ void hyper_read_rows(const HyperReadKernel a) {
  const int64_t row = block_x() / a.blocks, i = 4 * (block_x() % a.blocks * threads() + thread());
  const int64_t left = a.hidden - i;
  if (left <= 0) return;
  const bool vector = a.vector != 0;
  const float *mix = a.mix + row * a.mix_row + i, *normed = a.normed + row * a.normed_row + i;
  Float4 sum{};
  for (int64_t s = 0; s < a.streams; ++s) {
    const Float4 logits = load_fours(mix + s * a.mix_stream, left, vector);
    const Float4 values = load_fours(normed + s * a.normed_stream, left, vector);
    for (int k = 0; k < 4; ++k) sum.v[k] = add_f32(sum.v[k], mul_f32(sigmoid_f32(logits.v[k]), values.v[k]));
  }
  for (float& one : sum.v) one = div_f32(one, static_cast<float>(a.streams));
  store_fours(a.u + row * a.u_row + i, sum, left, vector);
}

extern "C" __global__ void hyper_write_rows(const HyperWriteKernel a) {
  const int64_t item = block_x() / a.blocks, row = item / a.streams, stream = item % a.streams;
  const int64_t i = 4 * (block_x() % a.blocks * threads() + thread()), left = a.hidden - i;
  if (left <= 0) return;
  const bool vector = a.vector != 0;
  const float gate = mul_f32(2.0f, sigmoid_f32(a.inject[row * a.inject_row + stream]));
  float* x = a.x + row * a.x_row + stream * a.x_stream + i;
  const Float4 block = load_fours(a.block + row * a.block_row + i, left, vector);
  Float4 sum = load_fours(x, left, vector);
  for (int k = 0; k < 4; ++k) sum.v[k] = add_f32(sum.v[k], mul_f32(gate, block.v[k]));
  store_fours(x, sum, left, vector);
}
