// Blocks of threads for each row; four pairs a thread where everything lies on multiples of 16 bytes, else one.
#include "device/kernel.h"
#include "ops/rope/device_kernel.h"

using namespace strata;
using namespace strata::gpu;

namespace {

__device__ inline void turn(float& x, float& y, float cosine, float sine) {
  const float first = x, second = y;
  x = mul_f32(first, cosine) - mul_f32(second, sine);
  y = add_f32(mul_f32(first, sine), mul_f32(second, cosine));
}

}  // namespace

extern "C" __global__ void rope_pairs(const RopeKernel a) {
  const int64_t row = block_x() / a.blocks;
  const auto item = static_cast<int32_t>(block_x() % a.blocks) * threads() + thread();
  if (item >= a.heads * a.half) return;
  const int j = item % a.half, head = item / a.half;
  float* x = a.x + row * a.x_row + head * a.x_head + (a.adjacent != 0 ? 2 * j : j);
  turn(*x, *(x + (a.adjacent != 0 ? 1 : a.half)), a.cos[row * a.cos_row + j], a.sin[row * a.sin_row + j]);
}

extern "C" __global__ void rope_fours(const RopeKernel a) {
  const int64_t row = block_x() / a.blocks;
  const auto item = static_cast<int32_t>(block_x() % a.blocks) * threads() + thread();
  const int fours = a.half / 4;
  if (item >= a.heads * fours) return;
  const int j = 4 * (item % fours), head = item / fours;
  const bool adjacent = a.adjacent != 0;
  float* x = a.x + row * a.x_row + head * a.x_head + (adjacent ? 2 * j : j);
  float* partner = x + (adjacent ? 4 : a.half);
  const Float4 cosine = load_float4(a.cos + row * a.cos_row + j), sine = load_float4(a.sin + row * a.sin_row + j);
  Float4 first = load_float4(x), second = load_float4(partner);
  if (adjacent) {
    for (int k = 0; k < 2; ++k) {
      turn(first.v[2 * k], first.v[2 * k + 1], cosine.v[k], sine.v[k]);
      turn(second.v[2 * k], second.v[2 * k + 1], cosine.v[2 + k], sine.v[2 + k]);
    }
  } else {
    for (int k = 0; k < 4; ++k) turn(first.v[k], second.v[k], cosine.v[k], sine.v[k]);
  }
  store_float4(x, first);
  store_float4(partner, second);
}
