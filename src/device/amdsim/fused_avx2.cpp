#include "device/amdsim/fused.h"

#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#endif

namespace strata::amdsim {

void fuse_lanes_avx2([[maybe_unused]] const unsigned* a, [[maybe_unused]] const unsigned* b,
                     [[maybe_unused]] const unsigned* c, [[maybe_unused]] unsigned* result,
                     [[maybe_unused]] int lanes) {
#if defined(__AVX2__) && defined(__FMA__)
  auto load = [](const unsigned* words) { return _mm256_loadu_ps(reinterpret_cast<const float*>(words)); };
  for (int l = 0; l < lanes; l += 8)
    _mm256_storeu_ps(reinterpret_cast<float*>(result + l), _mm256_fmadd_ps(load(a + l), load(b + l), load(c + l)));
#else
  fuse_lanes_plain(a, b, c, result, lanes);
#endif
}

}  // namespace strata::amdsim
