// Internal to embedding: what its kernel gets.
#pragma once

#include <cstdint>

namespace strata {

struct EmbeddingKernel {
  const int32_t* ids;
  const char* table;
  float* y;
  int64_t rows, vocabulary, width, copies;
  int64_t table_row;      // bytes
  int64_t y_row, y_copy;  // elements
  int64_t blocks;         // of threads for each row
  uint32_t type;
};

}  // namespace strata
