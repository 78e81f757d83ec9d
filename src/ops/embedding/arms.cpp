#include "evidence/arm.h"
#include "ops/embedding/embedding.h"
#include "ops/embedding/parity.h"

namespace strata {

void embedding_portable(Queue& queue, const EmbeddingArgs& args);  // cpu.cpp
void embedding_device(Queue& queue, const EmbeddingArgs& args);    // device.cpp
extern const KernelImage kernel_image_embedding;

namespace {
constexpr Arm<EmbeddingArgs> kArms[] = {
    {"thread", always_runs<EmbeddingArgs>, embedding_device, true, false, CpuIsa::Portable, &kernel_image_embedding},
    {"portable", always_runs<EmbeddingArgs>, embedding_portable},
};

// Ids in the memory of an accelerator are checked by its kernel.
void check_ids(const EmbeddingArgs& args) {
  for (int64_t t = 0; t < args.ids.extent(0); ++t) {
    const int32_t id = args.ids.as<int32_t>()[t];
    if (id < 0 || id >= args.table.extent(0))
      argument_error("embedding", "token id " + std::to_string(id) + " is outside the vocabulary of " +
                                      std::to_string(args.table.extent(0)));
  }
}
}  // namespace

void embedding(Queue& queue, const EmbeddingArgs& args) {
  check_tensor("embedding", "ids", args.ids, DType::I32, {-1});
  check_shape("embedding", "table", args.table, {-1, -1});
  check_tensor("embedding", "y", args.y, DType::F32, {args.ids.extent(0), -1, args.table.extent(1)});
  if (queue.accelerator() == nullptr) check_ids(args);
  choose_arm<EmbeddingArgs>(queue, "embedding", kArms, args).run(queue, args);
}

std::span<const Arm<EmbeddingArgs>> embedding_arms() { return kArms; }

}  // namespace strata
