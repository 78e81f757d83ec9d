// Search for scales that minimise a weighted squared error; shared by the encoders.
//
// Every sum runs in eight lanes added in one fixed order, so that results do not hang on the instruction set. Inputs
// are finite (see finite_or_limit) and n is a multiple of 8, at most 256.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/half.h"

namespace strata::gguf {

// NaN becomes 0 and everything else is clamped to ±limit, the largest magnitude that the format can hold.
inline float finite_or_limit(float x, float limit) {
  if (std::isnan(x)) return 0.f;
  return x < -limit ? -limit : x > limit ? limit : x;
}

// Nearest integer, ties to even, of |x| < 2^22: the sum has no bits left for a fraction.
inline float round_even(float x) { return (x + 0x1.8p23f) - 0x1.8p23f; }

inline float clamp_round(float x, float low, float high) {
  x = x < low ? low : x;
  x = x > high ? high : x;
  return round_even(x);
}

// 0 for 0: a scale of 0 leaves one value only, and q = 0 is taken.
inline float inverse(float scale) { return scale != 0.f ? 1.f / scale : 0.f; }

// Spreads below this are far under the least f16: as good as none, and their inverse could overflow.
inline constexpr float kNegligible = 0x1p-60f;

// Sums in eight lanes; see the head of this file.
inline constexpr int kLanes = 8;
struct Lanes {
  float lane[kLanes] = {};
  float sum() const {
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
  }
};

// The integers within `reach` of free / unit, kept in low..high.
struct Window {
  int first, last;
  Window(float free, float unit, int reach, int low, int high) {
    const float ratio = unit != 0.f ? free / unit : 0.f;
    const int nearest = static_cast<int>(clamp_round(ratio, static_cast<float>(low), static_cast<float>(high)));
    first = std::max(low, nearest - reach);
    last = std::min(high, nearest + reach);
  }
};

// The f16 scale for magnitudes up to `largest` with `levels` steps: largest / levels to nearest, but never so small
// that `largest` lies more than half a step beyond the last level (only a subnormal f16 is coarse enough for that).
// Saturates at the largest finite f16.
uint16_t cover_f16(float largest, float levels);

// Weights of the squared error: 1 + |x| / rms(x). Large weights of a row matter more than their share of the error.
void magnitude_weights(const float* x, int n, float* weights);

// The weights of a sub-block: its importance relative to the largest, or magnitude_weights where there is none (null,
// or nothing positive and finite among it).
void error_weights(const float* x, const float* importance, int n, float* weights);

// x ≈ scale·q - min with q = 0..levels, scale >= 0, min >= 0.
struct AffineFit {
  float scale = 0.f, min = 0.f;
  float error = 0.f;  // Σ w (scale·q - min - x)²
};

// Error of the best levels for a given scale and min, and the sums from which better ones follow.
struct AffineSums {
  float error, w, wq, wqq, wx, wxq;
};

AffineSums affine_sums(const float* x, const float* weights, int n, int levels, float scale, float min);
AffineFit fit_affine(const float* x, const float* weights, int n, int levels);
void affine_levels(const float* x, int n, int levels, float scale, float min, uint8_t* q);

// x ≈ scale·q with q = low..high (low < 0 < high, |low| >= high); the scale may be negative.
struct SymmetricFit {
  float scale = 0.f;
  float error = 0.f;  // Σ w (scale·q - x)²
};

struct SymmetricSums {
  float error, wqq, wxq;
};

SymmetricSums symmetric_sums(const float* x, const float* weights, int n, int low, int high, float scale);
SymmetricFit fit_symmetric(const float* x, const float* weights, int n, int low, int high);
void symmetric_levels(const float* x, int n, int low, int high, float scale, int8_t* q);

}  // namespace strata::gguf
