#include <cmath>

#include "base/fmath.h"
#include "ops/norm/norm.h"

namespace strata {

void norm_portable(Queue& queue, const NormArgs& args) {
  const int64_t groups = args.x.extent(1), width = args.x.extent(2);
  const bool per_group = args.weight.rank == 2;
  queue.pool().run(args.x.extent(0) * groups, ThreadPool::grain_of(2 * width), [&](int64_t begin, int64_t end, int) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t t = item / groups, group = item % groups;
      const float* x = args.x[t].row<const float>(group);
      const float* w = per_group ? args.weight.row<const float>(group) : args.weight.f32();
      float* y = args.y[t].row<float>(group);
      const float mean = sum_squares_f32(x, width) / static_cast<float>(width);
      const float scale = 1.0f / std::sqrt(mean + args.eps);
      for (int64_t i = 0; i < width; ++i) y[i] = x[i] * scale * w[i];
    }
  });
}

}  // namespace strata
