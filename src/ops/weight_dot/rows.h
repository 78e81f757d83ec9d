// Products of rows of f32 with rows of weights on the CPU, for the operators that have them: matmul and experts.
// A result depends on its row of x and its row of the weights alone, whatever else is computed with it.
#pragma once

#include <vector>

#include "base/tensor.h"
#include "ops/weight_dot/types.h"

namespace strata {

class WeightDot {
 public:
  // Rows of the weights that one share of a thread pool should hold whole multiples of.
  static constexpr int64_t kGrain = kPanelRows;

  // weight: any dtype [rows, in], on the host.
  WeightDot(const WeightDotKernel& kernel, const Tensor& weight);

  // y[t][i] = scale · (weight row first + i) · x[t] + bias[i], for i below count; bias may be null. `panel` is scratch
  // that grows as needed.
  void run(int64_t first, int64_t count, const std::vector<const float*>& x, const std::vector<float*>& y, float scale,
           const float* bias, std::vector<float>& panel) const;

 private:
  void decode(const char* row, int64_t begin, int64_t elements, int64_t ahead, float* out) const;

  const WeightDotKernel& kernel_;
  Tensor weight_;
  int64_t in_;
  DotFewFn few_;
  DotDecodeFn decode_;
  const void* grid_;
};

}  // namespace strata
