// The elementary functions of the CPU arms: one form of each, the same bits in every arm, built from plain f32
// operations so that a compiler can vectorise loops over them. Checked against float64 in
// tests/unit/base/fmath_test.cpp.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace strata {

// e^x within 2 ulp for results that are normal numbers; 0 below -87.33 (no subnormals), infinity above 88.72; NaN
// stays. x = n ln 2 + r with |r| <= ln 2 / 2 in two steps (Cody and Waite), then the Taylor polynomial of degree 7 in
// r, whose remainder is below r^8/8! = 5e-9.
inline float exp_f32(float x) {
  constexpr float kLog2e = 1.44269504088896341f;
  constexpr float kLn2High = 0.693359375f;  // 10 bits: n * kLn2High is exact
  constexpr float kLn2Low = -2.12194440054690583e-4f;
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
  // 2^n in two factors, since n may be 128; n comes from the low bits of `shifted`.
  const int32_t k = std::bit_cast<int32_t>(shifted) - 0x4b400000;
  const int32_t half = k >> 1;
  const float scale_a = std::bit_cast<float>((half + 127) << 23);
  const float scale_b = std::bit_cast<float>((k - half + 127) << 23);
  const float result = p * scale_a * scale_b;
  const float low = x < -87.33654f ? 0.0f : result;
  const float high = x > 88.72283f ? INFINITY : low;
  return x != x ? x : high;
}

inline float sigmoid_f32(float x) { return 1.0f / (1.0f + exp_f32(-x)); }
inline float silu_f32(float x) { return x / (1.0f + exp_f32(-x)); }

// log(1 + e^x), x itself above 20 (models.md, section 1). Called once per token and head: float64 inside.
inline float softplus_f32(float x) {
  if (x > 20.0f) return x;
  return static_cast<float>(std::log1p(std::exp(static_cast<double>(x))));
}

// Dot product with the virtual width of the CPU arms: 16 lanes, lane l sums elements l, l + 16, ...; then one tree.
// Every arm that promises the same bits uses these lanes, this tree and no fused multiply-add.
inline constexpr int kLanes = 16;

inline float reduce_lanes(const float* lanes) {
  float a[8], b[4];
  for (int l = 0; l < 8; ++l) a[l] = lanes[l] + lanes[l + 8];
  for (int l = 0; l < 4; ++l) b[l] = a[l] + a[l + 4];
  return (b[0] + b[2]) + (b[1] + b[3]);
}

inline float dot_f32(const float* x, const float* y, int64_t n) {
  float lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int l = 0; l < kLanes; ++l) lanes[l] += x[i + l] * y[i + l];
  for (int l = 0; i < n; ++i, ++l) lanes[l] += x[i] * y[i];
  return reduce_lanes(lanes);
}

inline float sum_squares_f32(const float* x, int64_t n) { return dot_f32(x, x, n); }

}  // namespace strata
