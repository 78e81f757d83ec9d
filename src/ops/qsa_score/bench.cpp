#include "evidence/bench.h"

#include "base/half.h"
#include "ops/qsa_score/parity.h"

namespace strata {
namespace {

constexpr int64_t kHeads = 4, kDims = 128, kRatio = 4;

void fill(CaseMemory& memory, Random& random, QsaScoreArgs& args, DType form, int64_t rows, int64_t cells) {
  const int64_t blocks = cells / kRatio;
  args.q = memory.f32({rows, kHeads, kDims}, random);
  args.pooled = memory.tensor(form, {blocks, kDims});
  for (int64_t b = 0; b < blocks; ++b)
    for (int64_t i = 0; i < kDims; ++i) {
      const float value = random.uniform(-1, 1);
      if (form == DType::F32)
        args.pooled.row<float>(b)[i] = value;
      else
        args.pooled.row<uint16_t>(b)[i] = f32_to_bf16(value);
    }
  args.n_kv = memory.i32(std::vector<int32_t>(static_cast<size_t>(rows), static_cast<int32_t>(cells)));
  args.scores = memory.tensor(DType::F32, {rows, blocks});
}

BenchShape shape(DType form, int64_t rows, int64_t cells) {
  const auto blocks = static_cast<double>(cells / kRatio), queries = static_cast<double>(rows);
  const double key_bytes = blocks * static_cast<double>(bytes_of(form, kDims));
  std::vector<double> bound;
  BenchShape result = bench_shape<QsaScoreArgs>(
      std::string(to_string(form)) + ", " + std::to_string(rows) + " queries x " + std::to_string(cells) + " cells",
      qsa_score, qsa_score_arms(), copies_past_caches(key_bytes),
      [&](CaseMemory& memory, Random& random, QsaScoreArgs& args) {
        fill(memory, random, args, form, rows, cells);
        if (!bound.empty() || args.scores.elements() > (1 << 19)) return;  // the bound costs more than the arms
        bound.resize(static_cast<size_t>(args.scores.elements()));
        qsa_score_bound(args, bound.data());
      },
      {&QsaScoreArgs::scores});
  result.bytes = key_bytes + queries * (4.0 * kHeads * kDims + 4 * blocks);
  result.operations = 2.0 * queries * blocks * kHeads * kDims;
  result.kind = form == DType::BF16 ? OperationKind::Bf16 : OperationKind::F32;
  result.bound = std::move(bound);
  return result;
}

}  // namespace

std::vector<std::function<BenchShape()>> qsa_score_shapes() {
  std::vector<std::function<BenchShape()>> list;
  for (DType form : {DType::F32, DType::BF16})
    for (int64_t rows : {1, 4, 8, 48, 256})
      for (int64_t cells : {4096, 32768, 131072}) list.push_back([=] { return shape(form, rows, cells); });
  return list;
}

}  // namespace strata
