#include "device/device.h"

#include "ops/causal_conv/causal_conv.h"
#include "ops/causal_conv/device_kernel.h"

namespace strata {

extern const KernelImage kernel_image_causal_conv;

namespace {

// Whether every row may be taken 16 bytes at a time.
bool aligned(const Tensor& tensor) {
  return reinterpret_cast<uintptr_t>(tensor.data) % 16 == 0 && tensor.stride(0) % 16 == 0;
}

}  // namespace

void causal_conv_device(Queue& queue, const CausalConvArgs& args) {
  constexpr int64_t kFloat = sizeof(float), kThreads = 128;
  const int64_t rows = args.x.extent(0), channels = args.x.extent(1), blocks = (channels + kThreads - 1) / kThreads;
  CausalConvKernel kernel{args.x.f32(),
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
  // Few rows: more threads.
  constexpr int64_t kRunRows = 8;
  if (kernel.width == 4 && args.dilation == 1 && channels % 4 == 0 && rows >= 4 * kRunRows && aligned(args.x) &&
      aligned(args.history) && aligned(args.kernel) && aligned(args.y)) {
    kernel.blocks = (channels / 4 + kThreads - 1) / kThreads;
    queue.launch("causal_conv", kernel_image_causal_conv, "causal_conv_runs",
                 {{(rows + kRunRows - 1) / kRunRows * kernel.blocks}, {kThreads}}, kernel);
    return;
  }
  queue.launch("causal_conv", kernel_image_causal_conv, "causal_conv_rows", {{rows * blocks}, {kThreads}}, kernel);
}

}  // namespace strata
