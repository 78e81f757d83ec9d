// Elementary functions of kernels: the formulas of base/fmath.h, and with the flags of the build (no contraction) its
// bits.
#pragma once

#include "device/kernel.h"

namespace strata::gpu {

// e^x within 2 ulp for results that are normal numbers; 0 below -87.33, infinity above 88.72; NaN stays.
__device__ inline float exp_f32(float x) {
  constexpr float kLog2e = 1.44269504088896341f, kLn2High = 0.693359375f, kLn2Low = -2.12194440054690583e-4f;
  constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  const float clamped = x < -88.0f ? -88.0f : (x > 89.0f ? 89.0f : x);
  const float shifted = clamped * kLog2e + kMagic;
  const float n = shifted - kMagic;
  const float r = (clamped - n * kLn2High) - n * kLn2Low;
  float p = 1.0f / 5040.0f;
  p = p * r + 1.0f / 720.0f;
  p = p * r + 1.0f / 120.0f;
  p = p * r + 1.0f / 24.0f;
  p = p * r + 1.0f / 6.0f;
  p = p * r + 0.5f;
  p = p * (r * r) + r + 1.0f;
  const auto k = static_cast<int32_t>(bits_of_f32(shifted) - 0x4b400000u);
  const int32_t half = k >> 1;
  const float scale_a = f32_of_bits(static_cast<uint32_t>(half + 127) << 23);
  const float scale_b = f32_of_bits(static_cast<uint32_t>(k - half + 127) << 23);
  const float result = p * scale_a * scale_b;
  const float low = x < -87.33654f ? 0.0f : result;
  const float high = x > 88.72283f ? f32_of_bits(0x7f800000u) : low;
  return x != x ? x : high;
}

__device__ inline float sigmoid_f32(float x) { return div_f32(1.0f, 1.0f + exp_f32(-x)); }
__device__ inline float silu_f32(float x) { return div_f32(x, 1.0f + exp_f32(-x)); }

}  // namespace strata::gpu
