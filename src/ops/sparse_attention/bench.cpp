#include "evidence/bench.h"

#include "ops/attention/softmax_shapes.h"
#include "ops/sparse_attention/parity.h"

namespace strata {
namespace {

constexpr int64_t kSelected = 2051, kRun = 4;  // cells of a row: 512 blocks of 4 and the tail

BenchShape timed(const HeadShape& heads, int64_t rows, int64_t cells, DType kv) {
  const double bytes = kv_bytes(heads, static_cast<double>(rows * kSelected), kv);
  const auto cache = std::make_shared<SparseAttentionArgs>();
  const auto sets = std::make_shared<int64_t>(0);
  BenchShape result = bench_shape<SparseAttentionArgs>(
      std::to_string(rows) + " rows, " + std::to_string(kSelected) + " of " + std::to_string(cells) + " cells, " +
          label(heads) + ", " + std::string(to_string(kv)),
      sparse_attention, sparse_attention_arms(), copies_past_caches(bytes),
      [=](CaseMemory& memory, Random& random, SparseAttentionArgs& args) {
        // All sets select from one cache, different cells each.
        if (*sets == 0) fill_timed(memory, random, *cache, heads, rows, cells, kv);
        args = *cache;
        args.out = memory.tensor(DType::F32, {rows, heads.heads, heads.dim});
        args.ids = memory.tensor(DType::I32, {rows, kSelected});
        args.counts = memory.i32(std::vector<int32_t>(static_cast<size_t>(rows), static_cast<int32_t>(kSelected)));
        const int64_t step = cells / (kSelected / kRun + 1);
        for (int64_t t = 0; t < rows; ++t)
          for (int64_t n = 0; n < kSelected; ++n)
            args.ids.row<int32_t>(t)[n] =
                static_cast<int32_t>(n / kRun * step + (t + *sets * kRun) % (step - kRun) + n % kRun);
        ++*sets;
      },
      {&SparseAttentionArgs::out});
  result.bytes = bytes + 8 * static_cast<double>(rows * heads.heads * heads.dim);
  result.operations = attention_operations(heads, static_cast<double>(rows * kSelected));
  return result;
}

}  // namespace

std::vector<std::function<BenchShape()>> sparse_attention_shapes() {
  std::vector<std::function<BenchShape()>> list;
  for (DType kv : {DType::F32, DType::BF16, DType::Q8_0})
    for (int64_t rows : {1, 4, 64}) list.push_back([=] { return timed({24, 2, 256}, rows, 32768, kv); });
  return list;
}

}  // namespace strata
