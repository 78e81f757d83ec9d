#include "evidence/arm.h"
#include "ops/embedding/embedding.h"
#include "ops/embedding/parity.h"

namespace strata {

void embedding_portable(Queue& queue, const EmbeddingArgs& args);  // cpu.cpp

namespace {
constexpr Arm<EmbeddingArgs> kArms[] = {{"portable", always_runs<EmbeddingArgs>, embedding_portable}};
}

void embedding(Queue& queue, const EmbeddingArgs& args) {
  check_tensor("embedding", "ids", args.ids, DType::I32, {-1});
  check_shape("embedding", "table", args.table, {-1, -1});
  check_tensor("embedding", "y", args.y, DType::F32, {args.ids.extent(0), -1, args.table.extent(1)});
  for (int64_t t = 0; t < args.ids.extent(0); ++t) {
    const int32_t id = args.ids.as<int32_t>()[t];
    if (id < 0 || id >= args.table.extent(0))
      argument_error("embedding", "token id " + std::to_string(id) + " is outside the vocabulary of " +
                                      std::to_string(args.table.extent(0)));
  }
  choose_arm<EmbeddingArgs>(queue, "embedding", kArms, args).run(queue, args);
}

std::span<const Arm<EmbeddingArgs>> embedding_arms() { return kArms; }

}  // namespace strata
