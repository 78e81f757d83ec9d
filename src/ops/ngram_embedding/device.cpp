#include "device/device.h"

#include <algorithm>
#include <cmath>

#include "ops/device_aligned.h"
#include "ops/ngram_embedding/device_kernel.h"
#include "ops/ngram_embedding/ngram_embedding.h"

namespace strata {

extern const KernelImage kernel_image_ngram_embedding;

namespace {
constexpr int64_t kFloat = sizeof(float);
}

std::string ngram_embedding_device_refusal(const NgramEmbeddingArgs& args) {
  const NgramParams& params = *args.params;
  if (params.orders <= kMaxNgramOrders && params.orders * params.heads <= kMaxNgramHeads) return {};
  return std::to_string(params.orders) + " orders of " + std::to_string(params.heads) + " hash heads are more than " +
         std::to_string(kMaxNgramOrders) + ", or more than " + std::to_string(kMaxNgramHeads) + " heads in all";
}

void ngram_embedding_device(Queue& queue, const NgramEmbeddingArgs& args) {
  constexpr int64_t kThreads = 32;
  const NgramParams& params = *args.params;
  const int64_t width = args.table.extent(1), blocks = (width + 8 * kThreads - 1) / (8 * kThreads);
  NgramEmbeddingKernel kernel{};
  kernel.ids = args.ids.as<const int32_t>();
  kernel.context = args.context.as<const int32_t>();
  kernel.table = args.table.as<const char>();
  kernel.y = args.y.f32();
  kernel.width = width;
  kernel.table_row = args.table.stride(0);
  kernel.y_row = args.y.stride(0) / kFloat;
  kernel.y_head = args.y.stride(1) / kFloat;
  kernel.blocks = blocks;
  std::copy(params.multipliers.begin(), params.multipliers.end(), kernel.multipliers);
  std::copy(params.head_sizes.begin(), params.head_sizes.end(), kernel.sizes);
  std::copy(params.head_offsets.begin(), params.head_offsets.end(), kernel.offsets);
  kernel.orders = params.orders;
  kernel.heads = params.heads;
  kernel.eos = params.eos;
  kernel.vector = width % 8 == 0 && on_sixteen(args.y);
  kernel.type = static_cast<uint32_t>(args.table.dtype);
  queue.launch("ngram_embedding", kernel_image_ngram_embedding, "ngram_embedding_rows",
               {{args.ids.extent(0) * args.y.extent(1) * blocks}, {kThreads}}, kernel);
}

void ngram_gate_device(Queue& queue, const NgramGateArgs& args) {
  constexpr int64_t kThreads = 256;
  const int64_t streams = args.key.extent(1), hidden = args.key.extent(2);
  const bool vector =
      hidden % 4 == 0 && on_sixteen(args.key) && on_sixteen(args.query) && on_sixteen(args.value) && on_sixteen(args.y);
  const NgramGateKernel kernel{args.key.f32(),
                               args.query.f32(),
                               args.value.f32(),
                               args.y.f32(),
                               streams,
                               hidden,
                               args.key.stride(0) / kFloat,
                               args.key.stride(1) / kFloat,
                               args.query.stride(0) / kFloat,
                               args.query.stride(1) / kFloat,
                               args.value.stride(0) / kFloat,
                               args.y.stride(0) / kFloat,
                               args.y.stride(1) / kFloat,
                               1.0f / std::sqrt(static_cast<float>(hidden)),
                               vector};
  queue.launch("ngram_gate", kernel_image_ngram_embedding, "ngram_gate_rows",
               {{args.key.extent(0) * streams}, {kThreads}, static_cast<uint32_t>(kThreads / 32 * kFloat)}, kernel);
}

}  // namespace strata
