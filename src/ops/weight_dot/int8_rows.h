// Products of rounded rows with rows of weights on the CPU, for the operators that have them: matmul and experts.
// A result depends on its row of x and its row of the weights alone, whatever else is computed with it.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/tensor.h"
#include "base/thread_pool.h"
#include "ops/weight_dot/int8_types.h"

namespace strata {

// Rows rounded for weights of one type (or of several that have the same traits).
class Int8Rows {
 public:
  Int8Rows(const Int8Kernel& kernel, DType weights, int64_t rows, int64_t in);
  void round(ThreadPool& pool, const std::function<const float*(int64_t row)>& x);
  const Int8Piece* row(int64_t t) const { return pieces_.get() + t * row_pieces_; }

 private:
  const Int8Kernel& kernel_;
  Int8Traits traits_;
  int64_t rows_, in_, row_pieces_;
  std::unique_ptr<Int8Piece[]> pieces_;
};

class Int8Dot {
 public:
  // Rows of the weights that one share of a thread pool should hold whole multiples of.
  static constexpr int64_t kGrain = 32;

  // weight: [rows, in] on the host, of a type in has_integer_levels, `in` a multiple of 32.
  Int8Dot(const Int8Kernel& kernel, const Tensor& weight);

  // y[t][i] = scale · (weight row first + i) · x[t] + bias[i], for i below count; bias may be null. `panel` is scratch
  // that grows as needed.
  void run(int64_t first, int64_t count, const std::vector<const Int8Piece*>& x, const std::vector<float*>& y,
           float scale, const float* bias, std::vector<char>& panel) const;

 private:
  // More than few_rows rows of x: turns of them with weights that stay in the nearer caches.
  void in_turns(int64_t first, int64_t count, const std::vector<const Int8Piece*>& x, const std::vector<float*>& y,
                float scale, const float* bias) const;

  const Int8Kernel& kernel_;
  Tensor weight_;
  int64_t in_;
  Int8FewFn few_;
  Int8PackFn pack_;
  Int8Traits traits_;
  const void* grid_;
};

}  // namespace strata
