#include "device/device.h"

#include "ops/causal_conv/causal_conv.h"
#include "ops/causal_conv/device_kernel.h"

namespace strata {

extern const KernelImage kernel_image_causal_conv;

void causal_conv_device(Queue& queue, const CausalConvArgs& args) {
  constexpr int64_t kFloat = sizeof(float), kThreads = 128;
  const int64_t rows = args.x.extent(0), channels = args.x.extent(1), blocks = (channels + kThreads - 1) / kThreads;
  const CausalConvKernel kernel{args.x.f32(),
                                args.history.f32(),
                                args.kernel.f32(),
                                args.y.f32(),
                                rows,
                                channels,
                                args.kernel.extent(1),
                                args.dilation,
                                args.x.stride(0) / kFloat,
                                args.history.stride(0) / kFloat,
                                args.kernel.stride(0) / kFloat,
                                args.y.stride(0) / kFloat,
                                blocks};
  queue.launch("causal_conv", kernel_image_causal_conv, "causal_conv_rows", {{rows * blocks}, {kThreads}}, kernel);
}

}  // namespace strata
