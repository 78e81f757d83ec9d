#include "evidence/bench.h"

#include "ops/attention/parity.h"
#include "ops/attention/softmax_shapes.h"

namespace strata {
namespace {

BenchShape timed(const HeadShape& heads, int64_t rows, int64_t cells, DType kv) {
  const double bytes = kv_bytes(heads, static_cast<double>(cells), kv);
  BenchShape result = bench_shape<AttentionArgs>(std::to_string(rows) + " rows, " + std::to_string(cells) + " cells, " +
                                                     label(heads) + ", " + std::string(to_string(kv)),
                                                 attention, attention_arms(), copies_past_caches(bytes),
                                                 [=](CaseMemory& memory, Random& random, AttentionArgs& args) {
                                                   fill_timed(memory, random, args, heads, rows, cells, kv);
                                                   std::vector<int32_t> n_kv;
                                                   for (int64_t t = 0; t < rows; ++t)
                                                     n_kv.push_back(static_cast<int32_t>(cells - rows + 1 + t));
                                                   args.n_kv = memory.i32(n_kv);
                                                 },
                                                 {&AttentionArgs::out});
  const auto width = static_cast<double>(rows * heads.heads * heads.dim);
  result.bytes = bytes + 8 * width;
  result.operations = attention_operations(heads, static_cast<double>(rows * (2 * cells - rows + 1)) / 2);
  return result;
}

}  // namespace

std::vector<std::function<BenchShape()>> attention_shapes() {
  std::vector<std::function<BenchShape()>> list;
  for (const HeadShape& heads : {HeadShape{24, 2, 256}, HeadShape{32, 8, 128}, HeadShape{8, 2, 64}}) {
    for (int64_t cells : {4096, 32768, 131072})
      for (DType kv : {DType::F32, DType::BF16}) list.push_back([=] { return timed(heads, 1, cells, kv); });
    for (DType kv : {DType::F16, DType::Q8_0, DType::Q4_0}) list.push_back([=] { return timed(heads, 1, 32768, kv); });
    for (DType kv : {DType::BF16, DType::Q8_0}) list.push_back([=] { return timed(heads, 4, 32768, kv); });
    for (int64_t rows : {4, 16}) list.push_back([=] { return timed(heads, rows, 131072, DType::BF16); });
    for (DType kv : {DType::F32, DType::BF16}) list.push_back([=] { return timed(heads, 64, 4096, kv); });
  }
  return list;
}

}  // namespace strata
