// The arms of 16 lanes: the walk of weight_dot over columns.
#include <vector>

#include "ops/matmul/matmul.h"
#include "ops/weight_dot/rows.h"

namespace strata {
namespace {

void run(Queue& queue, const MatmulArgs& args, const WeightDotKernel& kernel) {
  const int64_t rows = args.x.extent(0), in = args.x.extent(1), out = args.weight.extent(0);
  std::vector<const float*> x(static_cast<size_t>(rows));
  for (int64_t t = 0; t < rows; ++t) x[static_cast<size_t>(t)] = args.x.row<const float>(t);
  const WeightDot weights(kernel, args.weight);
  const int64_t worth = ThreadPool::grain_of(in * rows / 8);
  const int64_t grain = (worth + WeightDot::kGrain - 1) / WeightDot::kGrain * WeightDot::kGrain;
  queue.pool().run(out, grain, [&](int64_t begin, int64_t end, int) {
    std::vector<float*> y(x.size());
    for (int64_t t = 0; t < rows; ++t) y[static_cast<size_t>(t)] = args.y.row<float>(t) + begin;
    std::vector<float> panel;
    weights.run(begin, end - begin, x, y, args.scale, args.bias.empty() ? nullptr : args.bias.f32() + begin, panel);
  });
}

}  // namespace

void matmul_avx2(Queue& queue, const MatmulArgs& args) { run(queue, args, kWeightDotAvx2); }
void matmul_avx512(Queue& queue, const MatmulArgs& args) { run(queue, args, kWeightDotAvx512); }

}  // namespace strata
