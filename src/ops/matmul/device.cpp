#include "device/device.h"

#include "ops/matmul/device_kernel.h"
#include "ops/matmul/matmul.h"

namespace strata {

extern const KernelImage kernel_image_matmul_f32;

namespace {

bool rows_aligned(const Tensor& tensor, int64_t bytes) {
  return reinterpret_cast<uintptr_t>(tensor.data) % static_cast<uintptr_t>(bytes) == 0 && tensor.stride(0) % bytes == 0;
}

}  // namespace

void matmul_device_f32(Queue& queue, const MatmulArgs& args) {
  constexpr int64_t kFloat = sizeof(float), kWaves = 4;
  const int64_t rows = args.x.extent(0), out = args.weight.extent(0), tile = rows == 1 ? 1 : 4;
  const int64_t tiles = (rows + tile - 1) / tile;
  const MatmulKernel kernel{args.x.f32(),
                            args.weight.as<const char>(),
                            args.bias.empty() ? nullptr : args.bias.f32(),
                            args.y.f32(),
                            rows,
                            args.x.extent(1),
                            out,
                            args.x.stride(0) / kFloat,
                            args.y.stride(0) / kFloat,
                            args.weight.stride(0),
                            tiles,
                            static_cast<uint32_t>(args.weight.dtype),
                            rows_aligned(args.x, 16),
                            args.scale};
  queue.launch("matmul", kernel_image_matmul_f32, tile == 1 ? "matmul_f32_1" : "matmul_f32_4",
               {{(out + kWaves - 1) / kWaves * tiles}, {kWaves * 32}}, kernel);
}

}  // namespace strata
