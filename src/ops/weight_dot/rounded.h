// Rows of activations as int8 in blocks of 32: the second contract of the operators that multiply rows with weights
// (ops/matmul/README.md, Rounded activations). What a block becomes depends on that block alone.
#pragma once

#include <cstdint>
#include <vector>

#include "base/dtype.h"

namespace strata {

enum class Activations {
  F32,   // as they are
  Int8,  // rounded to int8 where the weights are of a type in `has_integer_levels`
};

inline constexpr int64_t kRoundedBlock = 32;
// Blocks whose largest magnitude is below become zeros: their scale would be too coarse a number.
inline constexpr float kSmallestRounded = 0x1p-100f;

// Types whose weights are scale · level (less a minimum) with small whole levels, and blocks of whole 32 elements.
bool has_integer_levels(DType type);
inline bool is_rounded(Activations activations, DType weights, int64_t in) {
  return activations == Activations::Int8 && has_integer_levels(weights) && in % kRoundedBlock == 0;
}

// out[i] = float64(q_i) · scale of its block, exactly; n is a multiple of 32.
void round_to_int8(const float* x, int64_t n, int8_t* q, float* scales);
std::vector<double> rounded_to_int8(const float* x, int64_t n);
void nearest_to_int8(float* x, int64_t n);  // the same values, rounded to f32
// How far a rounded element may lie from its own, in the block's scale, and beyond that absolutely.
inline constexpr double kRoundingSteps = 0.5 + 0x1p-15;

// What is taken off scale · level for each weight of a row of a type in has_integer_levels: the minima of Q4_K and
// Q5_K, else zeros. Sums of levels and of minima are formed apart, so that errors are relative to both.
std::vector<double> weight_minima(DType type, const void* row, int64_t n);

}  // namespace strata
