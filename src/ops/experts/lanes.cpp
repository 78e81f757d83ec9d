// The arms of 16 lanes: rows that chose the same expert meet its weights together (weight_dot), gate and up in one
// pass with the activation.
#include <algorithm>

#include "ops/experts/groups.h"
#include "ops/weight_dot/rows.h"

namespace strata {
namespace {

constexpr int64_t kSpan = 4 * WeightDot::kGrain;  // inner indices whose gate and up stay in cache until activated

struct Scratch {
  std::vector<float> panel, gate, up;
  std::vector<const float*> x;
  std::vector<float*> y;
};

float scale_of(const Tensor& scale, int64_t expert) { return scale.empty() ? 1.0f : scale.f32()[expert]; }

std::vector<float*> rows_of(std::vector<float>& values, size_t rows, int64_t width) {
  values.resize(rows * static_cast<size_t>(width));
  std::vector<float*> list(rows);
  for (size_t t = 0; t < rows; ++t) list[t] = values.data() + t * static_cast<size_t>(width);
  return list;
}

class Experts {
 public:
  Experts(const ExpertsArgs& args, const WeightDotKernel& kernel)
      : args_(args),
        kernel_(kernel),
        groups_(group_by_expert(args)),
        hidden_(args.x.extent(1)),
        inner_(args.gate.extent(1)),
        k_(args.ids.extent(1)),
        activated_(groups_.pairs.size() * static_cast<size_t>(inner_)),
        parts_(groups_.pairs.size() * static_cast<size_t>(hidden_)) {}

  void run(Queue& queue) {
    const auto pairs = static_cast<int64_t>(groups_.pairs.size());
    queue.pool().run(inner_, grain_of(pairs * hidden_ / 4), [&](int64_t begin, int64_t end, int) {
      Scratch scratch;
      for_each_expert([&](int64_t e, const int64_t* pair, size_t count) {
        for (int64_t i = begin; i < end; i += kSpan) gate_up(e, pair, count, i, std::min(kSpan, end - i), scratch);
      });
    });
    queue.pool().run(hidden_, grain_of(pairs * inner_ / 8), [&](int64_t begin, int64_t end, int) {
      Scratch scratch;
      for_each_expert(
          [&](int64_t e, const int64_t* pair, size_t count) { down(e, pair, count, begin, end - begin, scratch); });
    });
    sum_expert_parts(queue, args_, parts_);
  }

 private:
  static int64_t grain_of(int64_t operations) {
    return (ThreadPool::grain_of(operations) + WeightDot::kGrain - 1) / WeightDot::kGrain * WeightDot::kGrain;
  }

  template <class Visit>
  void for_each_expert(const Visit& visit) const {
    for (size_t e = 0; e + 1 < groups_.start.size(); ++e)
      if (const int64_t first = groups_.start[e], count = groups_.start[e + 1] - first; count > 0)
        visit(static_cast<int64_t>(e), groups_.pairs.data() + first, static_cast<size_t>(count));
  }

  void gate_up(int64_t e, const int64_t* pairs, size_t count, int64_t first, int64_t width, Scratch& s) {
    s.x.resize(count);
    for (size_t p = 0; p < count; ++p) s.x[p] = args_.x.row<const float>(pairs[p] / k_);
    const std::vector<float*> gate = rows_of(s.gate, count, width), up = rows_of(s.up, count, width);
    WeightDot(kernel_, args_.gate[e]).run(first, width, s.x, gate, scale_of(args_.gate_scale, e), nullptr, s.panel);
    WeightDot(kernel_, args_.up[e]).run(first, width, s.x, up, scale_of(args_.up_scale, e), nullptr, s.panel);
    for (size_t p = 0; p < count; ++p)
      kernel_.activate(gate[p], up[p], activated_.data() + pairs[p] * inner_ + first, width);
  }

  void down(int64_t e, const int64_t* pairs, size_t count, int64_t first, int64_t width, Scratch& s) {
    s.x.resize(count);
    s.y.resize(count);
    for (size_t p = 0; p < count; ++p) {
      s.x[p] = activated_.data() + pairs[p] * inner_;
      s.y[p] = parts_.data() + pairs[p] * hidden_ + first;
    }
    WeightDot(kernel_, args_.down[e]).run(first, width, s.x, s.y, scale_of(args_.down_scale, e), nullptr, s.panel);
  }

  const ExpertsArgs& args_;
  const WeightDotKernel& kernel_;
  ExpertGroups groups_;
  int64_t hidden_, inner_, k_;
  std::vector<float> activated_, parts_;
};

}  // namespace

void experts_avx2(Queue& queue, const ExpertsArgs& args) { Experts(args, kWeightDotAvx2).run(queue); }
void experts_avx512(Queue& queue, const ExpertsArgs& args) { Experts(args, kWeightDotAvx512).run(queue); }

}  // namespace strata
