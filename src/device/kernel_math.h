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

// To the nearest integer, of |x| < 2^51.
__device__ inline double nearest_f64(double x) { return (x + 6755399441055744.0) - 6755399441055744.0; }

// e^x in float64 for x from -700 to 700, within 4e-16: 2^n e^r, Taylor to r^13 with |r| <= ln 2 / 2.
__device__ inline double exp_f64(double x) {
  const double n = nearest_f64(x * 1.4426950408889634074);
  const double r = fma_f64(-n, 1.9082149292705877e-10, fma_f64(-n, 0.6931471803691238, x));
  double p = 1.0 / 6227020800.0;
  const double coefficients[] = {1.0 / 479001600.0,
                                 1.0 / 39916800.0,
                                 1.0 / 3628800.0,
                                 1.0 / 362880.0,
                                 1.0 / 40320.0,
                                 1.0 / 5040.0,
                                 1.0 / 720.0,
                                 1.0 / 120.0,
                                 1.0 / 24.0,
                                 1.0 / 6.0,
                                 0.5,
                                 1.0,
                                 1.0};
  STRATA_UNROLL
  for (const double c : coefficients) p = fma_f64(p, r, c);
  union {
    uint64_t u;
    double d;
  } scale{static_cast<uint64_t>(static_cast<int64_t>(n) + 1023) << 52};
  return p * scale.d;
}

// log(1 + e^x), x itself above 20. With y = e^-|x|: log(1 + y) = 2 artanh(y / (2 + y)), whose argument is at most 1/3.
__device__ inline float softplus_f32(float x) {
  if (x > 20.0f || x != x) return x;
  const auto wide = static_cast<double>(x < -700.0f ? -700.0f : x);
  const double y = exp_f64(wide < 0 ? wide : -wide), s = y / (2.0 + y), square = s * s;
  double sum = 0;
  STRATA_UNROLL
  for (int k = 31; k > 0; k -= 2) sum = fma_f64(sum, square, 1.0 / k);
  return static_cast<float>(2.0 * s * sum + (wide > 0 ? wide : 0.0));
}

// Sine and cosine of |x| < 2^30, within 2e-16: quarter turns, then Taylor series for at most an eighth of a turn.
__device__ inline void sincos_f64(double x, double& sine, double& cosine) {
  const double n = nearest_f64(x * 0.63661977236758134308);
  const double r = fma_f64(-n, 6.123233995736766e-17, fma_f64(-n, 1.5707963267948966, x)), square = r * r;
  double s = 0, c = 0;
  const double odd[] = {-1.0 / 1307674368000.0, 1.0 / 6227020800.0, -1.0 / 39916800.0, 1.0 / 362880.0,
                        -1.0 / 5040.0,          1.0 / 120.0,        -1.0 / 6.0,        1.0};
  const double even[] = {1.0 / 20922789888000.0,
                         -1.0 / 87178291200.0,
                         1.0 / 479001600.0,
                         -1.0 / 3628800.0,
                         1.0 / 40320.0,
                         -1.0 / 720.0,
                         1.0 / 24.0,
                         -0.5,
                         1.0};
  STRATA_UNROLL
  for (const double k : odd) s = fma_f64(s, square, k);
  STRATA_UNROLL
  for (const double k : even) c = fma_f64(c, square, k);
  s = s * r;
  const auto quarter = static_cast<int64_t>(n) & 3;
  const double a = (quarter & 1) != 0 ? c : s, b = (quarter & 1) != 0 ? s : c;
  sine = (quarter & 2) != 0 ? -a : a;
  cosine = quarter == 1 || quarter == 2 ? -b : b;
}

}  // namespace strata::gpu
