#include "evidence/arm.h"
#include "ops/attention/attention.h"

namespace strata {

void attention_portable(Queue& queue, const AttentionArgs& args);  // cpu.cpp

namespace {
constexpr Arm<AttentionArgs> kArms[] = {{"portable", always_runs<AttentionArgs>, attention_portable}};
}

void attention(Queue& queue, const AttentionArgs& args) {
  check_tensor("attention", "q", args.q, DType::F32, {-1, -1, -1});
  const int64_t rows = args.q.extent(0), heads = args.q.extent(1), dim = args.q.extent(2);
  check_tensor("attention", "k", args.k, DType::F32, {-1, -1, dim});
  const int64_t cells = args.k.extent(0), kv_heads = args.k.extent(1);
  check_tensor("attention", "v", args.v, DType::F32, {cells, kv_heads, dim});
  check_tensor("attention", "n_kv", args.n_kv, DType::I32, {rows});
  check_tensor("attention", "out", args.out, DType::F32, {rows, heads, dim});
  if (kv_heads < 1 || heads % kv_heads != 0)
    argument_error("attention", std::to_string(heads) + " query heads do not divide among " + std::to_string(kv_heads) +
                                    " kv heads");
  for (int64_t t = 0; t < rows; ++t)
    if (const int32_t n = args.n_kv.as<int32_t>()[t]; n < 0 || n > cells)
      argument_error("attention", "n_kv " + std::to_string(n) + " of row " + std::to_string(t) + " is outside 0.." +
                                      std::to_string(cells));
  choose_arm<AttentionArgs>(queue, "attention", kArms, args).run(queue, args);
}

}  // namespace strata
