// Internal to store_rows: what its kernels get.
#pragma once

#include <cstdint>

namespace strata {

struct StoreRowsKernel {
  const float* rows;
  char* to;
  const void* const* pages;  // null: one array
  int64_t page_rows;
  int64_t first, width;
  int64_t row_stride;  // elements
  int64_t to_stride;   // bytes
  int64_t blocks;      // of threads for each row
  int32_t bf16, four_bits;
};

}  // namespace strata
