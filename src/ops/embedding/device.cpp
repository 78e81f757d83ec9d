#include "device/device.h"

#include "ops/embedding/device_kernel.h"
#include "ops/embedding/embedding.h"

namespace strata {

extern const KernelImage kernel_image_embedding;

void embedding_device(Queue& queue, const EmbeddingArgs& args) {
  constexpr int64_t kFloat = sizeof(float), kThreads = 64;
  const int64_t rows = args.ids.extent(0), width = args.table.extent(1);
  const int64_t blocks = (width + 8 * kThreads - 1) / (8 * kThreads);
  const EmbeddingKernel kernel{args.ids.as<const int32_t>(),
                               args.table.as<const char>(),
                               args.y.f32(),
                               rows,
                               args.table.extent(0),
                               width,
                               args.y.extent(1),
                               args.table.stride(0),
                               args.y.stride(0) / kFloat,
                               args.y.stride(1) / kFloat,
                               blocks,
                               static_cast<uint32_t>(args.table.dtype)};
  queue.launch("embedding", kernel_image_embedding, "embedding_rows", {{rows * blocks}, {kThreads}}, kernel);
}

}  // namespace strata
