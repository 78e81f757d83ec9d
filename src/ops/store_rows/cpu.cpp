#include <cstring>

#include "gguf/quant.h"
#include "ops/store_rows/store_rows.h"

namespace strata {

void store_rows_portable(Queue& queue, const StoreRowsArgs& args) {
  const int64_t width = args.rows.extent(1);
  const bool same = args.to.dtype == DType::F32 || args.to.dtype == DType::I32;
  const gguf::EncodeRow encode = same ? nullptr : gguf::encoder(args.to.dtype);
  queue.pool().run(args.rows.extent(0), ThreadPool::grain_of(width), [&](int64_t begin, int64_t end, int) {
    for (int64_t t = begin; t < end; ++t) {
      auto* to = const_cast<char*>(args.pages.at(args.to, args.first + t));
      if (same)
        std::memcpy(to, args.rows.row<const void>(t), static_cast<size_t>(width) * sizeof(float));
      else
        encode(args.rows.row<const float>(t), to, width);
    }
  });
}

}  // namespace strata
