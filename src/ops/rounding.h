// What the derived bounds share: how f32 roundings add up in dot products and activations (u = 2^-24).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "evidence/parity_case.h"

namespace strata {

inline constexpr double kTiny = 0x1p-149;    // one f32 result below the normal range is off by less than this
inline constexpr double kNormal = 0x1p-126;  // results below may be 0 instead, where a bound says so

// Longest way of a term through the 16-lane dot product of n terms (base/fmath.h): the product, the additions of its
// lane (the first one, to 0, is exact), four of the tree.
inline double dot_roundings(int64_t n) { return static_cast<double>(n / 16 + 5); }

inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
inline double silu(double x) { return x * sigmoid(x); }

// Roundings of sigmoid and silu at x: exp is within 2 ulp = 4 u, of which 1 + e^-x sees the share sigmoid(-x); the
// addition; the division.
inline double activation_roundings(double x) { return 2 + 4 * sigmoid(-x); }

// Below -ln 2^126 = -87.34, e^-x or its reciprocal leaves the normal range: the activation may be 0 instead.
inline constexpr double kFlushes = -87.3;
inline double sigmoid_flush(double x) { return x < kFlushes ? kNormal : 0; }
inline double silu_flush(double x) { return x < kFlushes ? 88 * kNormal : 0; }

// Error of the computed silu of a value within `error` of x. silu' = s (1 + x (1 - s)) with s = sigmoid(x), at most
// 1.1; |silu''| <= 1/2.
inline double silu_error(double x, double error) {
  const double s = sigmoid(x), slope = std::fabs(s * (1 + x * (1 - s)));
  const double carried = std::min(1.1 * error, slope * error + error * error / 4);
  const double largest = std::fabs(x * s) + carried;
  return carried + gamma(activation_roundings(x - error)) * largest + silu_flush(x - error) + kTiny;
}

}  // namespace strata
