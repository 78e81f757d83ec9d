// Fused multiply-adds of all lanes: the instruction of the processor where it has one, for it is a call of a function
// otherwise. The results are the same.
#pragma once

#include <cmath>

namespace strata::amdsim {

struct Fused {
  float operator()(float a, float b, float c) const { return std::fma(a, b, c); }
};

// Numbers as words of registers; `lanes`: 32 or 64.
using FuseLanes = void (*)(const unsigned* a, const unsigned* b, const unsigned* c, unsigned* result, int lanes);
FuseLanes fuse_lanes();  // of this processor
void fuse_lanes_plain(const unsigned* a, const unsigned* b, const unsigned* c, unsigned* result, int lanes);
void fuse_lanes_avx2(const unsigned* a, const unsigned* b, const unsigned* c, unsigned* result, int lanes);

}  // namespace strata::amdsim
