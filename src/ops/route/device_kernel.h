// Internal to route: what its kernel gets.
#pragma once

#include <cstdint>

namespace strata {

struct RouteKernel {
  const float* logits;
  int32_t* ids;
  float* weights;
  int64_t experts, k;
  int64_t logits_row, ids_row, weights_row;  // elements from one row to the next
  bool normalise;
  float scale;
};

}  // namespace strata
