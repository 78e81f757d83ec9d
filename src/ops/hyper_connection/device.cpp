#include "device/device.h"

#include "ops/device_aligned.h"
#include "ops/hyper_connection/device_kernel.h"
#include "ops/hyper_connection/hyper_connection.h"

namespace strata {

extern const KernelImage kernel_image_hyper_connection;

namespace {
constexpr int64_t kFloat = sizeof(float), kThreads = 128, kEach = 4 * kThreads;
}

void hyper_read_device(Queue& queue, const HyperReadArgs& args) {
  const int64_t rows = args.normed.extent(0), hidden = args.normed.extent(2);
  const int64_t blocks = (hidden + kEach - 1) / kEach;
  const bool vector = hidden % 4 == 0 && on_sixteen(args.normed) && on_sixteen(args.mix) && on_sixteen(args.u);
  const HyperReadKernel kernel{args.normed.f32(),
                               args.mix.f32(),
                               args.u.f32(),
                               args.normed.extent(1),
                               hidden,
                               args.normed.stride(0) / kFloat,
                               args.normed.stride(1) / kFloat,
                               args.mix.stride(0) / kFloat,
                               args.mix.stride(1) / kFloat,
                               args.u.stride(0) / kFloat,
                               blocks,
                               vector};
  queue.launch("hyper_read", kernel_image_hyper_connection, "hyper_read_rows", {{rows * blocks}, {kThreads}}, kernel);
}

void hyper_write_device(Queue& queue, const HyperWriteArgs& args) {
  const int64_t rows = args.x.extent(0), streams = args.x.extent(1), hidden = args.x.extent(2);
  const int64_t blocks = (hidden + kEach - 1) / kEach;
  const bool vector = hidden % 4 == 0 && on_sixteen(args.block) && on_sixteen(args.x);
  const HyperWriteKernel kernel{args.block.f32(),
                                args.inject.f32(),
                                args.x.f32(),
                                streams,
                                hidden,
                                args.block.stride(0) / kFloat,
                                args.inject.stride(0) / kFloat,
                                args.x.stride(0) / kFloat,
                                args.x.stride(1) / kFloat,
                                blocks,
                                vector};
  queue.launch("hyper_write", kernel_image_hyper_connection, "hyper_write_rows",
               {{rows * streams * blocks}, {kThreads}}, kernel);
}

}  // namespace strata
