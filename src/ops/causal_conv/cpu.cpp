#include <algorithm>
#include <cstring>
#include <vector>

#include "base/fmath.h"
#include "ops/causal_conv/causal_conv.h"

namespace strata {

// Taps are summed from the oldest to the newest.
void causal_conv_portable(Queue& queue, const CausalConvArgs& args) {
  const int64_t rows = args.x.extent(0), channels = args.x.extent(1), width = args.kernel.extent(1);
  const int64_t past = args.history.extent(0);
  queue.pool().run(channels, ThreadPool::grain_of((rows + 1) * (width + 8)), [&](int64_t begin, int64_t end, int) {
    const int64_t count = end - begin;
    std::vector<float> taps(static_cast<size_t>(width * count));  // [width, count]: a tap of all channels is contiguous
    for (int64_t c = 0; c < count; ++c)
      for (int64_t j = 0; j < width; ++j)
        taps[static_cast<size_t>(j * count + c)] = args.kernel.row<const float>(begin + c)[j];
    for (int64_t t = 0; t < rows; ++t) {
      float* y = args.y.row<float>(t) + begin;
      std::fill(y, y + count, 0.0f);
      for (int64_t j = 0; j < width; ++j) {
        const int64_t source = t - (width - 1 - j) * args.dilation;
        const float* x =
            (source < 0 ? args.history.row<const float>(past + source) : args.x.row<const float>(source)) + begin;
        const float* tap = taps.data() + j * count;
        for (int64_t c = 0; c < count; ++c) y[c] += tap[c] * x[c];
      }
      for (int64_t c = 0; c < count; ++c) y[c] = silu_f32(y[c]);
    }
  });
}

void push_history(const Tensor& x, const Tensor& history) {
  const int64_t rows = x.extent(0), past = history.extent(0);
  const auto bytes = static_cast<size_t>(x.extent(1)) * sizeof(float);
  const int64_t kept = std::max<int64_t>(0, past - rows);
  for (int64_t i = 0; i < kept; ++i) std::memcpy(history.row<float>(i), history.row<float>(i + rows), bytes);
  for (int64_t i = kept; i < past; ++i) std::memcpy(history.row<float>(i), x.row<float>(rows - past + i), bytes);
}

}  // namespace strata
