#include "ops/attention/softmax_block.h"
#include "ops/sparse_attention/sparse_attention.h"

namespace strata {

void sparse_attention_portable(Queue& queue, const SparseAttentionArgs& args) {
  const int64_t heads = args.q.extent(1), dim = args.q.extent(2), group = heads / args.k.extent(1);
  const int64_t stride = args.k.extent(1) * dim;
  queue.pool().run(args.q.extent(0) * heads, ThreadPool::grain_of(args.ids.extent(1) * dim * 2), [&](int64_t begin, int64_t end, int) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t t = item / heads, h = item % heads, offset = h / group * dim;
      const int32_t* ids = args.ids.row<const int32_t>(t);
      attend_row(args.q[t].row<const float>(h), args.k.f32() + offset, args.v.f32() + offset, stride, dim,
                 args.counts.as<int32_t>()[t], args.scale, [ids](int64_t i) { return int64_t{ids[i]}; },
                 args.out[t].row<float>(h));
    }
  });
}

}  // namespace strata
