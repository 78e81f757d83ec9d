// Elementary functions of kernels: the formulas of base/fmath.h, operation by operation, so that they give its bits.
#pragma once

#include "device/kernel.h"

namespace strata::gpu {

__device__ inline float infinity_f32() { return f32_of_bits(0x7f800000u); }

__device__ inline float exp_f32(float x) {
  const float clamped = x < -88.0f ? -88.0f : (x > 89.0f ? 89.0f : x);
  const float shifted = add_f32(mul_f32(clamped, 1.44269504088896341f), 12582912.0f);
  const float n = shifted - 12582912.0f;
  const float r = (clamped - mul_f32(n, 0.693359375f)) - mul_f32(n, -2.12194440054690583e-4f);
  float p = 1.0f / 5040.0f;
  p = add_f32(mul_f32(p, r), 1.0f / 720.0f);
  p = add_f32(mul_f32(p, r), 1.0f / 120.0f);
  p = add_f32(mul_f32(p, r), 1.0f / 24.0f);
  p = add_f32(mul_f32(p, r), 1.0f / 6.0f);
  p = add_f32(mul_f32(p, r), 0.5f);
  p = add_f32(add_f32(mul_f32(p, mul_f32(r, r)), r), 1.0f);
  const auto k = static_cast<int32_t>(bits_of_f32(shifted) - 0x4b400000u);
  const int32_t half = k >> 1;
  const float scale_a = f32_of_bits(static_cast<uint32_t>(half + 127) << 23);
  const float scale_b = f32_of_bits(static_cast<uint32_t>(k - half + 127) << 23);
  const float result = mul_f32(mul_f32(p, scale_a), scale_b);
  const float low = x < -87.33654f ? 0.0f : result;
  const float high = x > 88.72283f ? infinity_f32() : low;
  return x != x ? x : high;
}

__device__ inline float sigmoid_f32(float x) { return div_f32(1.0f, 1.0f + exp_f32(-x)); }
__device__ inline float silu_f32(float x) { return div_f32(x, 1.0f + exp_f32(-x)); }

}  // namespace strata::gpu
