// The arms of wide registers: rows that chose the same expert meet its weights together (weight_dot), gate and up in
// one pass with the activation.
#include <algorithm>
#include <numeric>
#include <optional>

#include "ops/experts/groups.h"
#include "ops/weight_dot/int8_rows.h"
#include "ops/weight_dot/rows.h"

namespace strata {
namespace {

constexpr int64_t kGrain = std::lcm(WeightDot::kGrain, Int8Dot::kGrain);
constexpr int64_t kSpan = kGrain;  // inner indices whose gate and up stay in cache until activated

struct Scratch {
  std::vector<float> panel, gate, up;
  std::vector<char> packed;
  std::vector<const float*> x;
  std::vector<const Int8Piece*> rounded;
  std::vector<float*> y;
};

float scale_of(const Tensor& scale, int64_t expert) { return scale.empty() ? 1.0f : scale.f32()[expert]; }

std::vector<float*> rows_of(std::vector<float>& values, size_t rows, int64_t width) {
  values.resize(rows * static_cast<size_t>(width));
  std::vector<float*> list(rows);
  for (size_t t = 0; t < rows; ++t) list[t] = values.data() + t * static_cast<size_t>(width);
  return list;
}

struct Kernels {
  const WeightDotKernel& f32;
  const Int8Kernel* int8;  // null: no matrix rounds what it multiplies
};

// One of the three matrices of every expert, and the rows it multiplies where they are rounded.
class Matrix {
 public:
  Matrix(const Kernels& kernels, const ExpertsArgs& args, const Tensor& weights, const Tensor& scale, size_t rows)
      : kernels_(kernels), weights_(weights), scale_(scale) {
    const int64_t in = weights.extent(2);
    if (kernels.int8 != nullptr && is_rounded(args.activations, weights.dtype, in))
      rounded_.emplace(*kernels.int8, weights.dtype, static_cast<int64_t>(rows), in);
  }

  // row(t) is row t of what the matrix multiplies.
  template <class Row>
  void round(ThreadPool& pool, const Row& row) {
    if (rounded_) rounded_->round(pool, row);
  }

  // y[p] = scale · (weight rows first .. first + width - 1 of expert e) · row t of p, for t = of(pair p).
  template <class Of, class Row>
  void run(int64_t e, int64_t first, int64_t width, const int64_t* pairs, const Of& of, const Row& row,
           const std::vector<float*>& y, Scratch& s) const {
    const float scale = scale_of(scale_, e);
    if (rounded_) {
      s.rounded.resize(y.size());
      for (size_t p = 0; p < y.size(); ++p) s.rounded[p] = rounded_->row(of(pairs[p]));
      return Int8Dot(*kernels_.int8, weights_[e]).run(first, width, s.rounded, y, scale, nullptr, s.packed);
    }
    s.x.resize(y.size());
    for (size_t p = 0; p < y.size(); ++p) s.x[p] = row(of(pairs[p]));
    WeightDot(kernels_.f32, weights_[e]).run(first, width, s.x, y, scale, nullptr, s.panel);
  }

 private:
  const Kernels& kernels_;
  const Tensor& weights_;
  const Tensor& scale_;
  std::optional<Int8Rows> rounded_;
};

class Experts {
 public:
  Experts(const ExpertsArgs& args, const Kernels& kernels)
      : args_(args),
        kernels_(kernels),
        groups_(group_by_expert(args)),
        hidden_(args.x.extent(1)),
        inner_(args.gate.extent(1)),
        k_(args.ids.extent(1)),
        gate_(kernels_, args, args.gate, args.gate_scale, static_cast<size_t>(args.x.extent(0))),
        up_(kernels_, args, args.up, args.up_scale, static_cast<size_t>(args.x.extent(0))),
        down_(kernels_, args, args.down, args.down_scale, groups_.pairs.size()),
        activated_(groups_.pairs.size() * static_cast<size_t>(inner_)),
        parts_(groups_.pairs.size() * static_cast<size_t>(hidden_)) {}

  void run(Queue& queue) {
    const auto pairs = static_cast<int64_t>(groups_.pairs.size());
    const auto x = [this](int64_t t) { return args_.x.row<const float>(t); };
    gate_.round(queue.pool(), x);
    up_.round(queue.pool(), x);
    queue.pool().run(inner_, grain_of(pairs * hidden_ / 4), [&](int64_t begin, int64_t end, int) {
      Scratch scratch;
      for_each_expert([&](int64_t e, const int64_t* pair, size_t count) {
        for (int64_t i = begin; i < end; i += kSpan) gate_up(e, pair, count, i, std::min(kSpan, end - i), scratch);
      });
    });
    down_.round(queue.pool(), [this](int64_t pair) { return activated_.data() + pair * inner_; });
    queue.pool().run(hidden_, grain_of(pairs * inner_ / 8), [&](int64_t begin, int64_t end, int) {
      Scratch scratch;
      for_each_expert(
          [&](int64_t e, const int64_t* pair, size_t count) { down(e, pair, count, begin, end - begin, scratch); });
    });
    sum_expert_parts(queue, args_, parts_);
  }

 private:
  static int64_t grain_of(int64_t operations) {
    return (ThreadPool::grain_of(operations) + kGrain - 1) / kGrain * kGrain;
  }

  template <class Visit>
  void for_each_expert(const Visit& visit) const {
    for (size_t e = 0; e + 1 < groups_.start.size(); ++e)
      if (const int64_t first = groups_.start[e], count = groups_.start[e + 1] - first; count > 0)
        visit(static_cast<int64_t>(e), groups_.pairs.data() + first, static_cast<size_t>(count));
  }

  void gate_up(int64_t e, const int64_t* pairs, size_t count, int64_t first, int64_t width, Scratch& s) {
    const auto row_of = [this](int64_t pair) { return pair / k_; };
    const auto x = [this](int64_t t) { return args_.x.row<const float>(t); };
    const std::vector<float*> gate = rows_of(s.gate, count, width), up = rows_of(s.up, count, width);
    gate_.run(e, first, width, pairs, row_of, x, gate, s);
    up_.run(e, first, width, pairs, row_of, x, up, s);
    for (size_t p = 0; p < count; ++p)
      kernels_.f32.activate(gate[p], up[p], activated_.data() + pairs[p] * inner_ + first, width);
  }

  void down(int64_t e, const int64_t* pairs, size_t count, int64_t first, int64_t width, Scratch& s) {
    s.y.resize(count);
    for (size_t p = 0; p < count; ++p) s.y[p] = parts_.data() + pairs[p] * hidden_ + first;
    down_.run(
        e, first, width, pairs, [](int64_t pair) { return pair; },
        [this](int64_t pair) { return activated_.data() + pair * inner_; }, s.y, s);
  }

  const ExpertsArgs& args_;
  const Kernels kernels_;
  ExpertGroups groups_;
  int64_t hidden_, inner_, k_;
  Matrix gate_, up_, down_;
  std::vector<float> activated_, parts_;
};

}  // namespace

void experts_avx2(Queue& queue, const ExpertsArgs& args) { Experts(args, {kWeightDotAvx2, nullptr}).run(queue); }
void experts_avx512(Queue& queue, const ExpertsArgs& args) { Experts(args, {kWeightDotAvx512, nullptr}).run(queue); }
void experts_avx2_int8(Queue& queue, const ExpertsArgs& args) {
  Experts(args, {kWeightDotAvx2, &kInt8Avx2}).run(queue);
}
void experts_avx512_vnni(Queue& queue, const ExpertsArgs& args) {
  Experts(args, {kWeightDotAvx512, &kInt8Avx512Vnni}).run(queue);
}
void experts_avx512_vbmi(Queue& queue, const ExpertsArgs& args) {
  Experts(args, {kWeightDotAvx512, &kInt8Avx512Vbmi}).run(queue);
}

}  // namespace strata
