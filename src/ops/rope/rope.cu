// A pair a thread.
#include "device/kernel.h"
#include "ops/rope/device_kernel.h"

using namespace strata;
using namespace strata::gpu;

extern "C" __global__ void rope_pairs(const RopeKernel a) {
  const int64_t item = block_x() * threads() + thread();
  if (item >= a.rows * a.heads * a.half) return;
  const int64_t j = item % a.half, head = item / a.half % a.heads, row = item / a.half / a.heads;
  float* x = a.x + row * a.x_row + head * a.x_head + (a.adjacent != 0 ? 2 * j : j);
  float* partner = x + (a.adjacent != 0 ? 1 : a.half);
  const float cosine = a.cos[row * a.cos_row + j], sine = a.sin[row * a.sin_row + j];
  const float first = *x, second = *partner;
  *x = mul_f32(first, cosine) - mul_f32(second, sine);
  *partner = add_f32(mul_f32(first, sine), mul_f32(second, cosine));
}
