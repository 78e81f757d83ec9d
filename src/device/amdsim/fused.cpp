#include "device/amdsim/fused.h"

#include <bit>

#include "base/cpu_features.h"

namespace strata::amdsim {

void fuse_lanes_plain(const unsigned* a, const unsigned* b, const unsigned* c, unsigned* result, int lanes) {
  for (int l = 0; l < lanes; ++l)
    result[l] = std::bit_cast<unsigned>(
        Fused{}(std::bit_cast<float>(a[l]), std::bit_cast<float>(b[l]), std::bit_cast<float>(c[l])));
}

FuseLanes fuse_lanes() {
  static const FuseLanes chosen = cpu_features().has(CpuIsa::Avx2) ? fuse_lanes_avx2 : fuse_lanes_plain;
  return chosen;
}

}  // namespace strata::amdsim
