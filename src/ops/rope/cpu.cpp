#include "ops/rope/rope.h"
#include "ops/rope/rotate.h"

namespace strata {

void rope_portable(Queue& queue, const RopeArgs& args) {
  const int64_t heads = args.x.extent(1), half = args.cos.extent(1);
  queue.pool().run(args.x.extent(0), ThreadPool::grain_of(heads * half * 6), [&](int64_t begin, int64_t end, int) {
    for (int64_t t = begin; t < end; ++t) {
      const float* cos_row = args.cos.row<const float>(t);
      const float* sin_row = args.sin.row<const float>(t);
      const Tensor row = args.x[t];
      for (int64_t h = 0; h < heads; ++h) rotate_head(row.row<float>(h), cos_row, sin_row, half, args.pairs);
    }
  });
}

}  // namespace strata
