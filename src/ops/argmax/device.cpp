#include "device/device.h"

#include "ops/argmax/argmax.h"
#include "ops/argmax/device_kernel.h"

namespace strata {

extern const KernelImage kernel_image_argmax;

void argmax_device(Queue& queue, const ArgmaxArgs& args) {
  constexpr int64_t kEach = kArgmaxThreads * kArgmaxEach;
  const int64_t rows = args.logits.extent(0), count = args.logits.extent(1), blocks = (count + kEach - 1) / kEach;
  auto* best = static_cast<uint64_t*>(queue.scratch(static_cast<uint64_t>(rows * blocks) * 12));
  const ArgmaxKernel kernel{args.logits.f32(),
                            args.allowed.as<const uint32_t>(),
                            args.ids.as<int32_t>(),
                            best,
                            reinterpret_cast<uint32_t*>(best + rows * blocks),
                            count,
                            args.logits.stride(0) / static_cast<int64_t>(sizeof(float)),
                            args.ids.stride(0) / static_cast<int64_t>(sizeof(int32_t)),
                            blocks};
  constexpr uint32_t kShared = kArgmaxThreads * 16;
  queue.launch("argmax", kernel_image_argmax, "argmax_blocks", {{rows * blocks}, {kArgmaxThreads}, kShared}, kernel);
  queue.launch("argmax", kernel_image_argmax, "argmax_rows", {{rows}, {kArgmaxThreads}, kShared}, kernel);
}

}  // namespace strata
