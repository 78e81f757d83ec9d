#include <vector>

#include "gguf/quant.h"
#include "ops/embedding/embedding.h"

namespace strata {

void embedding_oracle(const EmbeddingArgs& args, double* out) {
  const int64_t rows = args.y.extent(0), copies = args.y.extent(1), width = args.y.extent(2);
  const gguf::DecodeRow decode = gguf::decoder(args.table.dtype);
  std::vector<float> values(static_cast<size_t>(width));
  for (int64_t t = 0; t < rows; ++t) {
    decode(args.table.row<char>(args.ids.as<int32_t>()[t]), values.data(), width);
    for (int64_t c = 0; c < copies; ++c)
      for (int64_t i = 0; i < width; ++i) *out++ = static_cast<double>(values[static_cast<size_t>(i)]);
  }
}

}  // namespace strata
