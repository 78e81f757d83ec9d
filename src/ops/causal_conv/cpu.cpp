#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "base/fmath.h"
#include "ops/causal_conv/causal_conv.h"
#include "ops/causal_conv/lanes.h"

namespace strata {

namespace {

// A tap of all channels is contiguous: [width, count] for channels begin .. end - 1.
std::vector<float> taps_of(const CausalConvArgs& args, int64_t begin, int64_t end) {
  const int64_t width = args.kernel.extent(1), count = end - begin;
  std::vector<float> taps(static_cast<size_t>(width * count));
  for (int64_t c = 0; c < count; ++c)
    for (int64_t j = 0; j < width; ++j)
      taps[static_cast<size_t>(j * count + c)] = args.kernel.row<const float>(begin + c)[j];
  return taps;
}

// What tap j of row t meets.
const float* input_of(const CausalConvArgs& args, int64_t t, int64_t j) {
  const int64_t source = t - (args.kernel.extent(1) - 1 - j) * args.dilation;
  return source < 0 ? args.history.row<const float>(args.history.extent(0) + source) : args.x.row<const float>(source);
}

constexpr int64_t kManyRows = 8;  // that pay for moving the taps side by side
constexpr size_t kMostTaps = 64;  // arms.cpp admits no more

void conv_on_lanes(Queue& queue, const CausalConvArgs& args, const CausalConvKernel& kernel) {
  const int64_t rows = args.x.extent(0), width = args.kernel.extent(1);
  const bool as_stored = rows < kManyRows && width == 4;
  queue.pool().run(
      args.x.extent(1), ThreadPool::grain_of((rows + 1) * width / 2), [&](int64_t begin, int64_t end, int) {
        std::vector<float> moved;
        if (!as_stored) moved = taps_of(args, begin, end);
        const int64_t taps_step = args.kernel.stride(0) / info(DType::F32).block_bytes;
        const float* taps = as_stored ? args.kernel.row<const float>(begin) : moved.data();
        std::array<const float*, kMostTaps> x;
        for (int64_t t = 0; t < rows; ++t) {
          for (int64_t j = 0; j < width; ++j) x[static_cast<size_t>(j)] = input_of(args, t, j) + begin;
          (as_stored ? kernel.four
                     : kernel.row)({x.data(), taps, width, args.y.row<float>(t) + begin, end - begin, taps_step});
        }
      });
}

}  // namespace

// Taps are summed from the oldest to the newest.
void causal_conv_portable(Queue& queue, const CausalConvArgs& args) {
  const int64_t rows = args.x.extent(0), channels = args.x.extent(1), width = args.kernel.extent(1);
  queue.pool().run(channels, ThreadPool::grain_of((rows + 1) * (width + 8)), [&](int64_t begin, int64_t end, int) {
    const int64_t count = end - begin;
    const std::vector<float> taps = taps_of(args, begin, end);
    for (int64_t t = 0; t < rows; ++t) {
      float* y = args.y.row<float>(t) + begin;
      std::fill(y, y + count, 0.0f);
      for (int64_t j = 0; j < width; ++j) {
        const float* x = input_of(args, t, j) + begin;
        const float* tap = taps.data() + j * count;
        for (int64_t c = 0; c < count; ++c) y[c] += tap[c] * x[c];
      }
      for (int64_t c = 0; c < count; ++c) y[c] = silu_f32(y[c]);
    }
  });
}

void causal_conv_avx2(Queue& queue, const CausalConvArgs& args) { conv_on_lanes(queue, args, kCausalConvAvx2); }
void causal_conv_avx512(Queue& queue, const CausalConvArgs& args) { conv_on_lanes(queue, args, kCausalConvAvx512); }

void push_history(const Tensor& x, const Tensor& history) {
  const int64_t rows = x.extent(0), past = history.extent(0);
  const auto bytes = static_cast<size_t>(x.extent(1)) * sizeof(float);
  const int64_t kept = std::max<int64_t>(0, past - rows);
  for (int64_t i = 0; i < kept; ++i) std::memcpy(history.row<float>(i), history.row<float>(i + rows), bytes);
  for (int64_t i = kept; i < past; ++i) std::memcpy(history.row<float>(i), x.row<float>(rows - past + i), bytes);
}

}  // namespace strata
