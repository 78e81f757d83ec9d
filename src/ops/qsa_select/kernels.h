// The passes over scores that the arms of qsa_select differ in. Plain types: also included where AVX flags are set.
#pragma once

#include <cstdint>

namespace strata {

struct QsaSelectKernels {
  // Indices of scores >= least (so none of NaN), ascending; returns how many, or capacity + 1 when they are more. Room
  // for capacity + 16 is written to.
  int64_t (*compact)(const float* scores, int64_t n, float least, int64_t capacity, int32_t* blocks);
  // Order keys of the scores of n blocks, or of the first n without `blocks`; returns the largest. Room for 16 more is
  // written to.
  uint32_t (*order)(const float* scores, const int32_t* blocks, int64_t n, uint32_t* keys);
  int64_t (*count)(const uint32_t* keys, int64_t n, uint32_t least);      // how many keys >= least
  uint32_t (*smallest)(const uint32_t* keys, int64_t n, uint32_t least);  // the smallest key >= least, or 0xffffffff
  // Appends the index of every key above the threshold and of the first `equal` at it. Index i stands for blocks[i], or
  // for itself without `blocks`. Room for 16 more is written to.
  void (*take)(const uint32_t* keys, const int32_t* blocks, int64_t n, uint32_t threshold, int64_t equal, int32_t* out);
};

extern const QsaSelectKernels kQsaSelectPortable, kQsaSelectAvx2, kQsaSelectAvx512;

}  // namespace strata
