// Internal to device_ceilings.cpp and its kernels.
#pragma once

#include <cstdint>

namespace strata {

struct CeilingKernel {
  const void* from;
  void* to;
  int64_t words;  // of 16 bytes
  int64_t turns;
};

}  // namespace strata
