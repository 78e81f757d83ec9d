// Rows into a cache: converted to its type, at consecutive rows of it. Contract: README.md in this folder.
#pragma once

#include "base/tensor.h"
#include "device/device.h"

namespace strata {

struct StoreRowsArgs {
  Tensor rows;        // f32 [n, width], or i32
  Tensor to;          // f32, f16, bf16, q8_0, q4_0 [at least first + n, width], or i32 for i32
  int64_t first = 0;  // the row of `to` that takes row 0
  RowPages pages{};   // of `to`
};

void store_rows(Queue& queue, const StoreRowsArgs& args);

// The bytes of one row of `to`, from the definition of its type (README.md).
void store_rows_oracle(const float* row, int64_t width, DType type, uint8_t* out);

}  // namespace strata
