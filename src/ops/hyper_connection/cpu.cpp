#include <algorithm>

#include "base/fmath.h"
#include "ops/hyper_connection/hyper_connection.h"

namespace strata {

void hyper_read_portable(Queue& queue, const HyperReadArgs& args) {
  const int64_t streams = args.normed.extent(1), hidden = args.normed.extent(2);
  queue.pool().run(args.normed.extent(0), ThreadPool::grain_of(streams * hidden * 8),
                   [&](int64_t begin, int64_t end, int) {
                     for (int64_t t = begin; t < end; ++t) {
                       float* u = args.u.row<float>(t);
                       std::fill(u, u + hidden, 0.0f);
                       for (int64_t s = 0; s < streams; ++s) {
                         const float* normed = args.normed[t].row<const float>(s);
                         const float* mix = args.mix[t].row<const float>(s);
                         for (int64_t i = 0; i < hidden; ++i) u[i] += sigmoid_f32(mix[i]) * normed[i];
                       }
                       for (int64_t i = 0; i < hidden; ++i) u[i] /= static_cast<float>(streams);
                     }
                   });
}

void hyper_write_portable(Queue& queue, const HyperWriteArgs& args) {
  const int64_t streams = args.x.extent(1), hidden = args.x.extent(2);
  queue.pool().run(args.x.extent(0), ThreadPool::grain_of(streams * hidden), [&](int64_t begin, int64_t end, int) {
    for (int64_t t = begin; t < end; ++t)
      for (int64_t s = 0; s < streams; ++s) {
        const float inject = 2.0f * sigmoid_f32(args.inject.row<const float>(t)[s]);
        const float* block = args.block.row<const float>(t);
        float* x = args.x[t].row<float>(s);
        for (int64_t i = 0; i < hidden; ++i) x[i] += inject * block[i];
      }
  });
}

}  // namespace strata
