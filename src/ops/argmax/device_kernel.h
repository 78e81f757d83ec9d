// Internal to argmax: what its kernels get.
#pragma once

#include <cstdint>

namespace strata {

inline constexpr int kArgmaxThreads = 256, kArgmaxEach = 16;  // logits of a thread

struct ArgmaxKernel {
  const float* logits;
  const uint32_t* allowed;  // may be null
  int32_t* ids;
  uint64_t* best;    // [rows, blocks]: the largest key of each block, 0 for none
  uint32_t* broken;  // [rows, blocks]: ~ of the least id that is not finite, 0 for none
  int64_t count, logits_row, ids_row;
  int64_t blocks;  // of each row
};

}  // namespace strata
