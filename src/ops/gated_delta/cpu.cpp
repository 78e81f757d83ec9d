#include "ops/gated_delta/cpu.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/fault.h"
#include "base/fmath.h"

namespace strata {
namespace {

constexpr float kNormEps = 1e-6f;     // on the sum, inside the root
constexpr int64_t kColumnSlice = 64;  // columns of a state are independent: a slice is the unit of work

// One key head of one row, L2-normalised and scaled.
void l2_normalise(const float* x, int64_t n, float factor, float* out) {
  const float scale = factor / std::sqrt(sum_squares_f32(x, n) + kNormEps);
  for (int64_t i = 0; i < n; ++i) out[i] = x[i] * scale;
}

// One token on columns [0, count) of one state: decay, delta from the decayed state, update, read.
void step(float* state, int64_t stride, const float* q, const float* k, const float* v, float decay, float beta,
          int64_t dk, int64_t count, float* delta, float* out) {
  std::fill(delta, delta + count, 0.0f);
  for (int64_t i = 0; i < dk; ++i) {
    float* row = state + i * stride;
    const float key = k[i];
    for (int64_t c = 0; c < count; ++c) {
      row[c] *= decay;
      delta[c] += row[c] * key;
    }
  }
  for (int64_t c = 0; c < count; ++c) delta[c] = beta * (v[c] - delta[c]);
  std::fill(out, out + count, 0.0f);
  for (int64_t i = 0; i < dk; ++i) {
    float* row = state + i * stride;
    const float key = k[i], query = q[i];
    for (int64_t c = 0; c < count; ++c) {
      row[c] += key * delta[c];
      out[c] += row[c] * query;
    }
  }
}

}  // namespace

void gated_delta_portable(Queue& queue, const GatedDeltaArgs& args) {
  const int64_t rows = args.q.extent(0), key_heads = args.q.extent(1), dk = args.q.extent(2);
  const int64_t value_heads = args.v.extent(1), dv = args.v.extent(2);
  const int64_t stored = stored_rows(args);
  const float query_scale = 1.0f / std::sqrt(static_cast<float>(dk));
  std::vector<float> queries(static_cast<size_t>(rows * key_heads * dk)), keys(queries.size());
  queue.pool().run(rows * key_heads, ThreadPool::grain_of(4 * dk), [&](int64_t begin, int64_t end, int) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t t = item / key_heads, h = item % key_heads;
      l2_normalise(args.q[t].row<const float>(h), dk, query_scale, queries.data() + item * dk);
      l2_normalise(args.k[t].row<const float>(h), dk, 1.0f, keys.data() + item * dk);
    }
  });
  const int64_t slices = (dv + kColumnSlice - 1) / kColumnSlice;
  queue.pool().run(value_heads * slices, ThreadPool::grain_of(rows * dk * kColumnSlice * 4),
                   [&](int64_t begin, int64_t end, int) {
                     float delta[kColumnSlice];
                     std::vector<float> copy(static_cast<size_t>(stored < rows ? dk * kColumnSlice : 0));
                     for (int64_t item = begin; item < end; ++item) {
                       const int64_t h = item / slices, first = item % slices * kColumnSlice;
                       const int64_t count = std::min(kColumnSlice, dv - first);
                       if (count < kColumnSlice && fault(Fault::SkipTail)) continue;
                       const int64_t key_head = key_head_of_arm(args.mapping, h, key_heads, value_heads);
                       float* state = args.state.row<float>(h) + first;
                       int64_t stride = args.state.stride(1) / static_cast<int64_t>(sizeof(float));
                       for (int64_t t = 0; t < rows; ++t) {
                         if (t == stored) {
                           for (int64_t i = 0; i < dk; ++i)
                             std::copy_n(state + i * stride, count, copy.data() + i * kColumnSlice);
                           state = copy.data();
                           stride = kColumnSlice;
                         }
                         const int64_t key_row = (t * key_heads + key_head) * dk;
                         step(state, stride, queries.data() + key_row, keys.data() + key_row,
                              args.v[t].row<const float>(h) + first, exp_f32(args.g.row<const float>(t)[h]),
                              args.beta.row<const float>(t)[h], dk, count, delta, args.out[t].row<float>(h) + first);
                       }
                     }
                   });
}

void gated_delta_gates_portable(Queue&, const GatedDeltaGatesArgs& args) {
  for (int64_t t = 0; t < args.alpha.extent(0); ++t)
    for (int64_t h = 0; h < args.alpha.extent(1); ++h) {
      const float alpha = *args.alpha[t].row<const float>(h), b = *args.b[t].row<const float>(h);
      args.g.row<float>(t)[h] = softplus_f32(alpha + args.dt_bias.f32()[h]) * args.a.f32()[h];
      args.beta.row<float>(t)[h] = sigmoid_f32(b);
      if (fault(Fault::WritePastSet)) args.beta.row<float>(t)[h + 1] = 0;
    }
}

}  // namespace strata
