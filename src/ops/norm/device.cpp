#include "device/device.h"

#include "ops/norm/device_kernel.h"
#include "ops/norm/norm.h"

namespace strata {

extern const KernelImage kernel_image_norm;

void norm_device(Queue& queue, const NormArgs& args) {
  constexpr int64_t kFloat = sizeof(float);
  const int64_t width = args.x.extent(2);
  const int64_t threads = width <= 256 ? 32 : 256;  // by the width alone: a group's sum has one order
  const NormKernel kernel{args.x.f32(),
                          args.weight.f32(),
                          args.y.f32(),
                          args.x.extent(1),
                          width,
                          args.x.stride(0) / kFloat,
                          args.x.stride(1) / kFloat,
                          args.y.stride(0) / kFloat,
                          args.y.stride(1) / kFloat,
                          args.weight.rank == 2 ? args.weight.stride(0) / kFloat : 0,
                          args.eps};
  queue.launch("norm", kernel_image_norm, "norm_group",
               {{args.x.extent(0) * args.x.extent(1)}, {threads}, static_cast<uint32_t>(threads / 32 * kFloat)},
               kernel);
}

}  // namespace strata
