#include <algorithm>
#include <vector>

#include "base/fault.h"
#include "base/fmath.h"
#include "gguf/quant.h"
#include "ops/matmul/matmul.h"

namespace strata {

// A tile of weight rows is decoded once per call and meets every row of x, so that each block is unpacked once whatever
// the number of rows. A result is one dot_f32 of one weight row with one row of x: rows never mix.
void matmul_portable(Queue& queue, const MatmulArgs& args) {
  constexpr int64_t kTile = 8;
  const int64_t rows = args.x.extent(0), in = args.x.extent(1), out = args.weight.extent(0);
  const gguf::DecodeRow decode = gguf::decoder(args.weight.dtype);
  const bool plain = args.weight.dtype == DType::F32;
  const int64_t terms = fault(Fault::SkipTail) ? in / kLanes * kLanes : in;
  const bool rounded = is_rounded(args.activations, args.weight.dtype, in);
  std::vector<float> nearest(rounded ? static_cast<size_t>(rows * in) : 0);
  for (int64_t t = 0; rounded && t < rows; ++t) {
    std::copy_n(args.x.row<const float>(t), in, nearest.data() + t * in);
    nearest_to_int8(nearest.data() + t * in, in);
  }
  const float* bias = args.bias.empty() ? nullptr : args.bias.f32();
  const int64_t grain = (ThreadPool::grain_of(in * rows) + kTile - 1) / kTile * kTile;
  queue.pool().run(out, grain, [&](int64_t begin, int64_t end, int) {
    std::vector<float> decoded(plain ? 0 : static_cast<size_t>(kTile * in));
    const float* w[kTile];
    for (int64_t tile = begin; tile < end; tile += kTile) {
      const int64_t count = std::min(kTile, end - tile);
      for (int64_t i = 0; i < count; ++i) {
        const void* row = args.weight.row<const void>(tile + i);
        w[i] = plain ? static_cast<const float*>(row) : decoded.data() + i * in;
        if (!plain) decode(row, decoded.data() + i * in, in);
      }
      for (int64_t t = 0; t < rows; ++t) {
        const float* x = rounded ? nearest.data() + t * in : args.x.row<const float>(t);
        float* y = args.y.row<float>(t) + tile;
        for (int64_t i = 0; i < count; ++i) {
          const float product = dot_f32(x, w[i], terms) * args.scale;
          y[fault(Fault::TransposeTile) ? count - 1 - i : i] = bias != nullptr ? product + bias[tile + i] : product;
        }
      }
    }
  });
}

}  // namespace strata
