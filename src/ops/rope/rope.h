// Rotary position embedding with linear and YaRN scaling. Contract and formulas: README.md in this folder.
#pragma once

#include <cstdint>
#include <vector>

#include "base/tensor.h"
#include "device/device.h"

namespace strata {

enum class RopePairs { HalfSplit, Adjacent };  // pair j is (j, j + R/2), or (2j, 2j + 1)
enum class RopeScaling { None, Linear, Yarn };

// How positions become angles: the same for every layer, head and index key of a model.
struct RopeParams {
  int rotary_dims = 0;  // R, even; dims R and above of a head pass through
  RopePairs pairs = RopePairs::HalfSplit;
  double base = 10000;
  RopeScaling scaling = RopeScaling::None;
  double factor = 1;            // s
  double original_context = 0;  // C, YaRN
  double beta_fast = 32, beta_slow = 1, ext = 1;
  double attention_factor = 0;      // YaRN: 0 means 1 + 0.1 ln s
  std::vector<float> pair_factors;  // rope_freqs: f_j divides the angle of pair j; empty or R/2 values
};

// Frequencies of the pairs in f32, as models.md section 4.2 defines them, and the factor on cos and sin.
struct RopeFrequencies {
  explicit RopeFrequencies(const RopeParams& params);  // Error{Argument} for impossible values
  RopePairs pairs;
  std::vector<float> frequency;  // [R/2]; the angle at position p is the f32 product p · frequency
  float magnitude = 1;           // m, multiplies cos and sin
  int rotary_dims() const { return static_cast<int>(frequency.size()) * 2; }

  // cos and sin of one position, m included: [R/2] each.
  void angles(int64_t position, float* cos_out, float* sin_out) const;
};

struct RopeArgs {
  Tensor x;         // f32 [rows, heads, dim], rows and heads may be strided; rotated in place
  Tensor cos, sin;  // f32 [rows, R/2]
  RopePairs pairs = RopePairs::HalfSplit;
};

void rope(Queue& queue, const RopeArgs& args);

// float64 [rows, heads, dim] from the x before the call.
void rope_oracle(const RopeArgs& args, double* out);
// Bound on |error| of every element (README.md, Error), in the oracle's order.
void rope_bound(const RopeArgs& args, double* out);
// Frequencies in float64 straight from the formulas: out [R/2], and the magnitude.
double rope_frequencies_oracle(const RopeParams& params, double* out);

}  // namespace strata
