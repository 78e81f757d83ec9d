// What an f32 arm may err on softmax(scale · q kᵀ) v over given cells.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "support/ops_test.h"

namespace strata::test {

using Cells = std::vector<std::vector<int32_t>>;  // of each row

inline Cells first_cells(const std::vector<int32_t>& n_kv) {
  Cells cells;
  for (int32_t n : n_kv) {
    cells.emplace_back();
    for (int32_t c = 0; c < n; ++c) cells.back().push_back(c);
  }
  return cells;
}

// Bound of one row and head, [dim]. With w_j = exp(s_j - max s), Z = sum w_j, N = sum w_j v_j, o = N / Z, u the unit
// roundoff, n cells in B blocks (each block may raise the running maximum, which multiplies the sums once more):
//   score    |ds_j| <= gamma(dim/16 + 6) |scale| sum |q_i k_ji|
//   weight   relative error R_j = exp(ds_j + u gap + (B + 1) 4u + (n + 2B + 2) u) - 1: the score's error; the
//   differences
//            from the running maxima, which add up to gap = max s - s_j; B + 1 exponentials of 2 ulp = 4u; sums,
//            products
//   flush    a weight below e^-87 may be 0 instead
//   output   |do| <= (sum w_j R_j |v_j| + |o| sum w_j R_j + flushed ones) / (Z - sum w_j R_j) + 3u |o|
inline void attention_row_bound(const float* q, const std::vector<const float*>& k, const std::vector<const float*>& v,
                                int64_t dim, double scale, double* bound) {
  const size_t n = k.size();
  std::vector<double> score(n), error(n);
  double best = -INFINITY, worst = 0;
  for (size_t j = 0; j < n; ++j) {
    double dot = 0, magnitude = 0;
    for (int64_t i = 0; i < dim; ++i) {
      dot += double{q[i]} * double{k[j][i]};
      magnitude += std::fabs(double{q[i]} * double{k[j][i]});
    }
    score[j] = scale * dot;
    error[j] = gamma(dot_roundings(dim) + 1) * std::fabs(scale) * magnitude;
    best = std::max(best, score[j]);
    worst = std::max(worst, error[j]);
  }
  const double cells = static_cast<double>(n), blocks = std::ceil(cells / 128), flushed = std::exp(-87.0);
  double total = 0, total_error = 0;
  std::vector<double> sum(static_cast<size_t>(dim), 0.0), off = sum;
  for (size_t j = 0; j < n; ++j) {
    const double weight = std::exp(score[j] - best), gap = best - score[j] + 2 * worst;
    const double relative = std::expm1(error[j] + kU * gap + (blocks + 1) * 4 * kU + (cells + 2 * blocks + 2) * kU);
    total += weight;
    total_error += weight * relative + flushed;
    for (int64_t i = 0; i < dim; ++i) {
      sum[static_cast<size_t>(i)] += weight * double{v[j][i]};
      off[static_cast<size_t>(i)] += (weight * relative + flushed) * std::fabs(double{v[j][i]}) + kTiny;
    }
  }
  for (int64_t i = 0; i < dim; ++i) {
    const double out = n == 0 ? 0 : std::fabs(sum[static_cast<size_t>(i)]) / total;
    bound[i] = n == 0 ? 0 : (off[static_cast<size_t>(i)] + out * total_error) / (total - total_error) + 3.01 * kU * out;
  }
}

inline std::vector<double> attention_bound(const Tensor& q, const Tensor& k, const Tensor& v, double scale,
                                           const Cells& cells) {
  const int64_t rows = q.extent(0), heads = q.extent(1), dim = q.extent(2), group = heads / k.extent(1);
  std::vector<double> bound(static_cast<size_t>(rows * heads * dim));
  for (int64_t t = 0; t < rows; ++t)
    for (int64_t h = 0; h < heads; ++h) {
      std::vector<const float*> keys, values;
      for (int32_t cell : cells[static_cast<size_t>(t)]) {
        keys.push_back(k[cell].row<const float>(h / group));
        values.push_back(v[cell].row<const float>(h / group));
      }
      attention_row_bound(q[t].row<const float>(h), keys, values, dim, scale, bound.data() + (t * heads + h) * dim);
    }
  return bound;
}

}  // namespace strata::test
