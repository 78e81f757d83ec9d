// Shared by the float64 oracles: an f32 element by its index, strides honoured.
#pragma once

#include "base/tensor.h"

namespace strata {

template <class... Index>
double element(const Tensor& tensor, Index... index) {
  const int64_t position[] = {static_cast<int64_t>(index)...};
  int64_t offset = 0;
  for (size_t axis = 0; axis < sizeof...(index); ++axis) offset += position[axis] * tensor.strides[axis];
  return static_cast<double>(*reinterpret_cast<const float*>(static_cast<const char*>(tensor.data) + offset));
}

}  // namespace strata
