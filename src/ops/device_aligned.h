// Which tensors kernels may read and write 16 bytes at a time.
#pragma once

#include <cstdint>

#include "base/tensor.h"

namespace strata {

// Every row starts on a multiple of 16 bytes.
inline bool on_sixteen(const Tensor& x) {
  bool all = reinterpret_cast<uintptr_t>(x.data) % 16 == 0;
  for (int axis = 0; axis + 1 < x.rank; ++axis) all = all && x.stride(axis) % 16 == 0;
  return all;
}

}  // namespace strata
