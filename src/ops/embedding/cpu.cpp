#include <cstring>

#include "gguf/quant.h"
#include "ops/embedding/embedding.h"

namespace strata {

void embedding_portable(Queue& queue, const EmbeddingArgs& args) {
  const int64_t copies = args.y.extent(1), width = args.y.extent(2);
  const gguf::DecodeRow decode = gguf::decoder(args.table.dtype);
  queue.pool().run(args.ids.extent(0), ThreadPool::grain_of(copies * width), [&](int64_t begin, int64_t end, int) {
    for (int64_t t = begin; t < end; ++t) {
      const Tensor y = args.y[t];
      decode(args.table.row<const void>(args.ids.as<int32_t>()[t]), y.f32(), width);
      for (int64_t copy = 1; copy < copies; ++copy)
        std::memcpy(y.row<float>(copy), y.f32(), static_cast<size_t>(width) * sizeof(float));
    }
  });
}

}  // namespace strata
