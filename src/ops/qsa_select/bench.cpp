#include "evidence/bench.h"

#include <algorithm>

#include "ops/qsa_select/parity.h"

namespace strata {
namespace {

constexpr int kRatio = 4, kBudget = 2048;

// Scores like those of relu sums: four normal heads, of which the positive ones count.
float relu_sum(Random& random) {
  float sum = 0;
  for (int head = 0; head < 4; ++head) {
    const float dot = random.uniform(-1, 1) + random.uniform(-1, 1) + random.uniform(-1, 1);
    sum += std::max(dot, 0.0f);
  }
  return sum;
}

// Warm rows know their threshold from the call before.
void fill(CaseMemory& memory, Random& random, QsaSelectArgs& args, int64_t rows, int64_t cells, bool warm) {
  args.scores = memory.tensor(DType::F32, {rows, cells / kRatio});
  for (int64_t t = 0; t < rows; ++t)
    for (int64_t b = 0; b < cells / kRatio; ++b) args.scores.row<float>(t)[b] = relu_sum(random);
  args.n_kv = memory.i32(std::vector<int32_t>(static_cast<size_t>(rows), static_cast<int32_t>(cells)));
  args.ratio = kRatio;
  args.budget = kBudget;
  args.ids = memory.tensor(DType::I32, {rows, kBudget + kRatio - 1});
  args.counts = memory.tensor(DType::I32, {rows});
  if (warm) args.thresholds = memory.i32(std::vector<int32_t>(static_cast<size_t>(rows), 0));
}

BenchShape shape(int64_t rows, int64_t cells, bool warm) {
  const double bytes = static_cast<double>(rows) * (static_cast<double>(cells / kRatio) + kBudget) * 4;
  BenchShape result = bench_shape<QsaSelectArgs>(
      std::to_string(rows) + " rows x " + std::to_string(cells) + " cells" + (warm ? ", warm" : ", cold"), qsa_select,
      qsa_select_arms(), copies_past_caches(bytes),
      [=](CaseMemory& memory, Random& random, QsaSelectArgs& args) { fill(memory, random, args, rows, cells, warm); },
      {&QsaSelectArgs::counts});
  result.bytes = bytes;
  return result;
}

}  // namespace

std::vector<std::function<BenchShape()>> qsa_select_shapes() {
  std::vector<std::function<BenchShape()>> list;
  for (bool warm : {false, true})
    for (int64_t rows : {1, 32})
      for (int64_t cells : {16384, 131072, 1048576})
        if (rows * cells <= 32 * 131072) list.push_back([=] { return shape(rows, cells, warm); });
  return list;
}

}  // namespace strata
