#include "ops/rope/rope.h"

namespace strata {

void rope_portable(Queue& queue, const RopeArgs& args) {
  const int64_t heads = args.x.extent(1), half = args.cos.extent(1);
  const int64_t step = args.pairs == RopePairs::HalfSplit ? 1 : 2;
  const int64_t partner = args.pairs == RopePairs::HalfSplit ? half : 1;
  queue.pool().run(args.x.extent(0), ThreadPool::grain_of(heads * half * 6), [&](int64_t begin, int64_t end, int) {
    for (int64_t t = begin; t < end; ++t) {
      const float* cos_row = args.cos.row<const float>(t);
      const float* sin_row = args.sin.row<const float>(t);
      const Tensor row = args.x[t];
      for (int64_t h = 0; h < heads; ++h) {
        float* x = row.row<float>(h);
        for (int64_t j = 0; j < half; ++j) {
          float& a = x[j * step];
          float& b = x[j * step + partner];
          const float rotated_a = a * cos_row[j] - b * sin_row[j];
          const float rotated_b = a * sin_row[j] + b * cos_row[j];
          a = rotated_a;
          b = rotated_b;
        }
      }
    }
  });
}

}  // namespace strata
