// Internal to qsa_select: what its kernels get.
#pragma once

#include <cstdint>

namespace strata {

inline constexpr int kSelectBins = 2048;
inline constexpr int kSelectKept = 4096;  // keys that the sieve keeps at most

struct QsaSelectKernel {
  const float* scores;
  int64_t score_row;  // elements from one row to the next
  const int32_t* n_kv;
  int32_t* ids;
  int64_t id_row;
  int32_t* counts;
  uint32_t* thresholds;     // or null
  int32_t limit, capacity;  // blocks of a row, ids of a row
  int32_t ratio, budget;    // cells of a block, blocks to select
  int32_t fixed_width;      // else whole blocks
  int32_t copies;           // of the histogram, a power of two
};

}  // namespace strata
