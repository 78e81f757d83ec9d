#include <algorithm>
#include <vector>

#include "base/fmath.h"
#include "gguf/quant.h"
#include "ops/experts/groups.h"

namespace strata {
namespace {

// A weight row decoded into scratch, or in place when it is f32.
class RowReader {
 public:
  explicit RowReader(const Tensor& weights)
      : weights_(weights), decode_(gguf::decoder(weights.dtype)), scratch_(static_cast<size_t>(weights.extent(2))) {}
  const float* read(int64_t expert, int64_t row) {
    const void* blocks = weights_[expert].row<const void>(row);
    if (weights_.dtype == DType::F32) return static_cast<const float*>(blocks);
    decode_(blocks, scratch_.data(), weights_.extent(2));
    return scratch_.data();
  }

 private:
  const Tensor& weights_;
  gguf::DecodeRow decode_;
  std::vector<float> scratch_;
};

float scale_of(const Tensor& scale, int64_t expert) { return scale.empty() ? 1.0f : scale.f32()[expert]; }

}  // namespace

ExpertGroups group_by_expert(const ExpertsArgs& args) {
  const int64_t rows = args.x.extent(0), k = args.ids.extent(1), count = args.gate.extent(0);
  ExpertGroups groups;
  groups.start.assign(static_cast<size_t>(count) + 1, 0);
  auto expert_of = [&](int64_t pair) { return args.ids.row<const int32_t>(pair / k)[pair % k]; };
  for (int64_t pair = 0; pair < rows * k; ++pair) ++groups.start[static_cast<size_t>(expert_of(pair)) + 1];
  for (size_t e = 1; e < groups.start.size(); ++e) groups.start[e] += groups.start[e - 1];
  groups.pairs.resize(static_cast<size_t>(rows * k));
  std::vector<int64_t> next(groups.start.begin(), groups.start.end() - 1);
  for (int64_t pair = 0; pair < rows * k; ++pair)
    groups.pairs[static_cast<size_t>(next[static_cast<size_t>(expert_of(pair))]++)] = pair;
  return groups;
}

void sum_expert_parts(Queue& queue, const ExpertsArgs& args, const std::vector<float>& parts) {
  const int64_t rows = args.x.extent(0), hidden = args.x.extent(1), k = args.ids.extent(1);
  queue.pool().run(rows, ThreadPool::grain_of(k * hidden), [&](int64_t begin, int64_t end, int) {
    for (int64_t t = begin; t < end; ++t) {
      float* y = args.y.row<float>(t);
      std::fill(y, y + hidden, 0.0f);
      for (int64_t slot = 0; slot < k; ++slot) {
        const float weight = args.weights.row<const float>(t)[slot];
        const float* part = parts.data() + (t * k + slot) * hidden;
        for (int64_t i = 0; i < hidden; ++i) y[i] += weight * part[i];
      }
    }
  });
}

namespace {

bool rounds(const ExpertsArgs& args, const Tensor& weights) {
  return is_rounded(args.activations, weights.dtype, weights.extent(2));
}

// The rows of x that a matrix multiplies, rounded where it asks for that.
class MatrixRows {
 public:
  MatrixRows(const ExpertsArgs& args, const Tensor& weights) : x_(args.x), width_(args.x.extent(1)) {
    if (!rounds(args, weights)) return;
    nearest_.resize(static_cast<size_t>(x_.extent(0) * width_));
    for (int64_t t = 0; t < x_.extent(0); ++t) {
      std::copy_n(x_.row<const float>(t), width_, nearest_.data() + t * width_);
      nearest_to_int8(nearest_.data() + t * width_, width_);
    }
  }
  const float* row(int64_t t) const { return nearest_.empty() ? x_.row<const float>(t) : nearest_.data() + t * width_; }

 private:
  const Tensor& x_;
  int64_t width_;
  std::vector<float> nearest_;
};

}  // namespace

// Each weight row is decoded once and meets the rows that chose its expert; a result is one dot_f32 whatever the batch.
void experts_portable(Queue& queue, const ExpertsArgs& args) {
  const int64_t rows = args.x.extent(0), hidden = args.x.extent(1), k = args.ids.extent(1);
  const int64_t count = args.gate.extent(0), inner = args.gate.extent(1);
  const ExpertGroups groups = group_by_expert(args);
  std::vector<float> activated(static_cast<size_t>(rows * k * inner)), parts(static_cast<size_t>(rows * k * hidden));
  const int64_t pairs = rows * k;  // (row, slot)
  const MatrixRows gate_x(args, args.gate), up_x(args, args.up);
  queue.pool().run(inner, ThreadPool::grain_of(pairs * hidden * 2), [&](int64_t begin, int64_t end, int) {
    RowReader gate_rows(args.gate), up_rows(args.up);
    for (int64_t e = 0; e < count; ++e) {
      const int64_t first = groups.start[static_cast<size_t>(e)], last = groups.start[static_cast<size_t>(e) + 1];
      if (first == last) continue;
      const float gate_scale = scale_of(args.gate_scale, e), up_scale = scale_of(args.up_scale, e);
      for (int64_t i = begin; i < end; ++i) {
        const float* gate = gate_rows.read(e, i);
        const float* up = up_rows.read(e, i);
        for (int64_t p = first; p < last; ++p) {
          const int64_t pair = groups.pairs[static_cast<size_t>(p)];
          const float g = dot_f32(gate_x.row(pair / k), gate, hidden) * gate_scale;
          const float u = dot_f32(up_x.row(pair / k), up, hidden) * up_scale;
          activated[static_cast<size_t>(pair * inner + i)] = silu_f32(g) * u;
        }
      }
    }
  });
  for (int64_t pair = 0; rounds(args, args.down) && pair < pairs; ++pair)
    nearest_to_int8(activated.data() + pair * inner, inner);
  queue.pool().run(hidden, ThreadPool::grain_of(pairs * inner), [&](int64_t begin, int64_t end, int) {
    RowReader down_rows(args.down);
    for (int64_t e = 0; e < count; ++e) {
      const int64_t first = groups.start[static_cast<size_t>(e)], last = groups.start[static_cast<size_t>(e) + 1];
      if (first == last) continue;
      const float down_scale = scale_of(args.down_scale, e);
      for (int64_t i = begin; i < end; ++i) {
        const float* down = down_rows.read(e, i);
        for (int64_t p = first; p < last; ++p) {
          const int64_t pair = groups.pairs[static_cast<size_t>(p)];
          parts[static_cast<size_t>(pair * hidden + i)] =
              dot_f32(activated.data() + pair * inner, down, inner) * down_scale;
        }
      }
    }
  });
  sum_expert_parts(queue, args, parts);
}

}  // namespace strata
