#include <algorithm>

#include "base/fmath.h"
#include "ops/hyper_connection/hyper_connection.h"
#include "ops/hyper_connection/lanes.h"

namespace strata {
namespace {

int64_t floats(int64_t bytes) { return bytes / static_cast<int64_t>(sizeof(float)); }

void read_on_lanes(Queue& queue, const HyperReadArgs& args, const HyperKernel& kernel) {
  const int64_t streams = args.normed.extent(1), hidden = args.normed.extent(2);
  queue.pool().run(args.normed.extent(0), ThreadPool::grain_of(streams * hidden), [&](int64_t begin, int64_t end, int) {
    for (int64_t t = begin; t < end; ++t)
      kernel.read({args.normed[t].f32(), args.mix[t].f32(), floats(args.normed.stride(1)), floats(args.mix.stride(1)),
                   args.u.row<float>(t), streams, hidden});
  });
}

void write_on_lanes(Queue& queue, const HyperWriteArgs& args, const HyperKernel& kernel) {
  const int64_t streams = args.x.extent(1), hidden = args.x.extent(2);
  queue.pool().run(args.x.extent(0), ThreadPool::grain_of(streams * hidden / 4), [&](int64_t begin, int64_t end, int) {
    for (int64_t t = begin; t < end; ++t)
      for (int64_t s = 0; s < streams; ++s)
        kernel.write({args.block.row<const float>(t), 2.0f * sigmoid_f32(args.inject.row<const float>(t)[s]),
                      args.x[t].row<float>(s), hidden});
  });
}

}  // namespace

void hyper_read_avx2(Queue& queue, const HyperReadArgs& args) { read_on_lanes(queue, args, kHyperAvx2); }
void hyper_read_avx512(Queue& queue, const HyperReadArgs& args) { read_on_lanes(queue, args, kHyperAvx512); }
void hyper_write_avx2(Queue& queue, const HyperWriteArgs& args) { write_on_lanes(queue, args, kHyperAvx2); }
void hyper_write_avx512(Queue& queue, const HyperWriteArgs& args) { write_on_lanes(queue, args, kHyperAvx512); }

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
