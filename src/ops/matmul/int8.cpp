// The arms for rounded activations: every row of x is rounded once, then the walk of weight_dot over columns.
#include <vector>

#include "ops/matmul/matmul.h"
#include "ops/weight_dot/int8_rows.h"

namespace strata {
namespace {

void run(Queue& queue, const MatmulArgs& args, const Int8Kernel& kernel) {
  const int64_t rows = args.x.extent(0), in = args.x.extent(1), out = args.weight.extent(0);
  Int8Rows rounded(kernel, args.weight.dtype, rows, in);
  rounded.round(queue.pool(), [&](int64_t t) { return args.x.row<const float>(t); });
  std::vector<const Int8Piece*> x(static_cast<size_t>(rows));
  for (int64_t t = 0; t < rows; ++t) x[static_cast<size_t>(t)] = rounded.row(t);
  const Int8Dot weights(kernel, args.weight);
  const int64_t worth = ThreadPool::grain_of(in * rows / 16);
  const int64_t grain = (worth + Int8Dot::kGrain - 1) / Int8Dot::kGrain * Int8Dot::kGrain;
  queue.pool().run(out, grain, [&](int64_t begin, int64_t end, int) {
    std::vector<float*> y(x.size());
    for (int64_t t = 0; t < rows; ++t) y[static_cast<size_t>(t)] = args.y.row<float>(t) + begin;
    std::vector<char> panel;
    weights.run(begin, end - begin, x, y, args.scale, args.bias.empty() ? nullptr : args.bias.f32() + begin, panel);
  });
}

}  // namespace

void matmul_avx2_int8(Queue& queue, const MatmulArgs& args) { run(queue, args, kInt8Avx2); }
void matmul_avx512_vnni(Queue& queue, const MatmulArgs& args) { run(queue, args, kInt8Avx512Vnni); }
void matmul_avx512_vbmi(Queue& queue, const MatmulArgs& args) { run(queue, args, kInt8Avx512Vbmi); }

}  // namespace strata
