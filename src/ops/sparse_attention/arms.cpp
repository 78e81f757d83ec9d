#include "evidence/arm.h"
#include "ops/sparse_attention/sparse_attention.h"

namespace strata {

void sparse_attention_portable(Queue& queue, const SparseAttentionArgs& args);  // cpu.cpp

namespace {
constexpr const char* kOp = "sparse_attention";
constexpr Arm<SparseAttentionArgs> kArms[] = {
    {"portable", always_runs<SparseAttentionArgs>, sparse_attention_portable}};

void check_ids(const SparseAttentionArgs& args) {
  const int64_t cells = args.k.extent(0);
  for (int64_t t = 0; t < args.q.extent(0); ++t) {
    const int32_t count = args.counts.as<int32_t>()[t];
    if (count < 0 || count > args.ids.extent(1))
      argument_error(kOp, "count " + std::to_string(count) + " of row " + std::to_string(t) + " is outside 0.." +
                              std::to_string(args.ids.extent(1)));
    const int32_t* ids = args.ids.row<const int32_t>(t);
    for (int32_t i = 0; i < count; ++i)
      if (ids[i] >= cells || ids[i] < (i == 0 ? 0 : ids[i - 1] + 1))
        argument_error(kOp, "cell " + std::to_string(ids[i]) + " of row " + std::to_string(t) +
                                " is not ascending or not below " + std::to_string(cells));
  }
}

}  // namespace

void sparse_attention(Queue& queue, const SparseAttentionArgs& args) {
  check_tensor(kOp, "q", args.q, DType::F32, {-1, -1, -1});
  const int64_t rows = args.q.extent(0), heads = args.q.extent(1), dim = args.q.extent(2);
  check_tensor(kOp, "k", args.k, DType::F32, {-1, -1, dim});
  const int64_t cells = args.k.extent(0), kv_heads = args.k.extent(1);
  check_tensor(kOp, "v", args.v, DType::F32, {cells, kv_heads, dim});
  check_tensor(kOp, "ids", args.ids, DType::I32, {rows, -1});
  check_tensor(kOp, "counts", args.counts, DType::I32, {rows});
  check_tensor(kOp, "out", args.out, DType::F32, {rows, heads, dim});
  if (kv_heads < 1 || heads % kv_heads != 0)
    argument_error(
        kOp, std::to_string(heads) + " query heads do not divide among " + std::to_string(kv_heads) + " kv heads");
  check_ids(args);
  choose_arm<SparseAttentionArgs>(queue, kOp, kArms, args).run(queue, args);
}

}  // namespace strata
