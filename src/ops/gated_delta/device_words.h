// What arms on matrix units share: rows of keys and queries in the lanes of a wave, scales of numbers in two f16 words.
#pragma once

#include "device/kernel_math.h"

namespace strata {
namespace {

using namespace strata::gpu;

// Two f16 words hold 22 bits of a number.
constexpr float kLowUp = 2048.0f, kLowDown = 1.0f / 2048.0f;

// Powers of two that bring numbers up to `largest` below 2 and back.
struct Scale {
  float up, down;
};
__device__ inline Scale scale_of(float largest) {
  uint32_t exponent = bits_of_f32(largest) >> 23 & 255u;
  if (exponent == 255u) return {1.0f, 1.0f};
  exponent = exponent < 1u ? 1u : (exponent > 253u ? 253u : exponent);
  return {f32_of_bits((254u - exponent) << 23), f32_of_bits(exponent << 23)};
}
__device__ inline float magnitude(float x) { return f32_of_bits(bits_of_f32(x) & 0x7fffffffu); }

// A row of numbers in a wave: the key of element i of a lane.
__device__ inline int64_t key_of(int i) { return 64 * (i / 2) + 2 * lane() + i % 2; }

template <int kKeys>
__device__ inline void load_row(const float* row, int64_t dk, float (&x)[kKeys / 32]) {
  STRATA_UNROLL
  for (int i = 0; i < kKeys / 32; ++i) x[i] = row != nullptr && key_of(i) < dk ? row[key_of(i)] : 0.0f;
}
template <int kKeys>
__device__ inline void normalise(float factor, float (&x)[kKeys / 32]) {
  float sum = 0;
  STRATA_UNROLL
  for (const float one : x) sum = fma_f32(one, one, sum);
  const float scale = div_f32(factor, sqrt_f32(wave_sum(sum) + 1e-6f));
  STRATA_UNROLL
  for (float& one : x) one = mul_f32(one, scale);
}

}  // namespace
}  // namespace strata
