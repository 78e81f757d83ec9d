#include "device/device.h"

#include "ops/rope/device_kernel.h"
#include "ops/rope/rope.h"

namespace strata {

extern const KernelImage kernel_image_rope;

void rope_device(Queue& queue, const RopeArgs& args) {
  constexpr int64_t kFloat = sizeof(float), kThreads = 128;
  const int64_t rows = args.x.extent(0), heads = args.x.extent(1), half = args.cos.extent(1);
  const RopeKernel kernel{args.x.f32(),
                          args.cos.f32(),
                          args.sin.f32(),
                          rows,
                          heads,
                          half,
                          args.x.stride(0) / kFloat,
                          args.x.stride(1) / kFloat,
                          args.cos.stride(0) / kFloat,
                          args.sin.stride(0) / kFloat,
                          args.pairs == RopePairs::Adjacent};
  queue.launch("rope", kernel_image_rope, "rope_pairs", {{(rows * heads * half + kThreads - 1) / kThreads}, {kThreads}},
               kernel);
}

}  // namespace strata
