#include "device/device.h"

#include "ops/store_rows/device_kernel.h"
#include "ops/store_rows/store_rows.h"

namespace strata {

extern const KernelImage kernel_image_store_rows;

void store_rows_device(Queue& queue, const StoreRowsArgs& args) {
  constexpr int64_t kThreads = 128;
  const int64_t rows = args.rows.extent(0), width = args.rows.extent(1);
  const DType type = args.to.dtype;
  const bool half = type == DType::F16 || type == DType::BF16, blocks = type == DType::Q8_0 || type == DType::Q4_0;
  const char* kernel = blocks ? "store_blocks" : half ? "store_halves" : "store_words";
  const int64_t each = half ? 2 * kThreads : kThreads, per_row = (width + each - 1) / each;
  const StoreRowsKernel arguments{args.rows.as<const float>(),
                                  args.to.as<char>(),
                                  args.pages.page,
                                  args.pages.rows,
                                  args.first,
                                  width,
                                  args.rows.stride(0) / static_cast<int64_t>(sizeof(float)),
                                  args.to.stride(0),
                                  per_row,
                                  type == DType::BF16,
                                  type == DType::Q4_0};
  queue.launch("store_rows", kernel_image_store_rows, kernel, {{rows * per_row}, {kThreads}}, arguments);
}

}  // namespace strata
