#include "ops/norm/norm.h"
#include "ops/norm/row.h"

namespace strata {
namespace {

void each_group(Queue& queue, const NormArgs& args, void (*norm_row)(const NormRow&)) {
  const int64_t groups = args.x.extent(1), width = args.x.extent(2);
  const bool per_group = args.weight.rank == 2;
  queue.pool().run(args.x.extent(0) * groups, ThreadPool::grain_of(2 * width), [&](int64_t begin, int64_t end, int) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t t = item / groups, group = item % groups;
      const float* weight = per_group ? args.weight.row<const float>(group) : args.weight.f32();
      norm_row({args.x[t].row<const float>(group), weight, args.y[t].row<float>(group), width, args.eps});
    }
  });
}

}  // namespace

void norm_portable(Queue& queue, const NormArgs& args) { each_group(queue, args, norm_row_portable); }
void norm_avx2(Queue& queue, const NormArgs& args) { each_group(queue, args, norm_row_avx2); }
void norm_avx512(Queue& queue, const NormArgs& args) { each_group(queue, args, norm_row_avx512); }

}  // namespace strata
