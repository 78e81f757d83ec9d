#include "ops/attention/softmax_block.h"
#include "ops/sparse_attention/sparse_attention.h"

namespace strata {

void sparse_attention_portable(Queue& queue, const SparseAttentionArgs& args) {
  const int64_t heads = args.q.extent(1), dim = args.q.extent(2), group = heads / args.k.extent(1);
  constexpr auto kFloat = static_cast<int64_t>(sizeof(float));
  const int64_t k_stride = args.k.stride(0) / kFloat, v_stride = args.v.stride(0) / kFloat;
  queue.pool().run(args.q.extent(0) * heads, ThreadPool::grain_of(args.ids.extent(1) * dim * 2),
                   [&](int64_t begin, int64_t end, int) {
                     for (int64_t item = begin; item < end; ++item) {
                       const int64_t t = item / heads, h = item % heads, kv_head = h / group;
                       const int32_t* ids = args.ids.row<const int32_t>(t);
                       attend_row(
                           args.q[t].row<const float>(h), args.k[0].row<const float>(kv_head),
                           args.v[0].row<const float>(kv_head), k_stride, v_stride, dim, args.counts.as<int32_t>()[t],
                           args.scale, [ids](int64_t i) { return int64_t{ids[i]}; }, args.out[t].row<float>(h));
                     }
                   });
}

}  // namespace strata
