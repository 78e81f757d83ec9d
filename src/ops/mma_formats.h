// Formats whose products go through matrix units (mma_kernel.h), and what their kernels need.
#pragma once

#include <cstdint>
#include <string>

#include "base/tensor.h"

namespace strata {

struct MmaFormat {
  DType type;
  const char* suffix;  // of the kernels' names
  bool in_first;       // of the two images: the formats of most files
  int group;           // elements under one scale
  bool minima;
};

const MmaFormat* mma_format(DType type);  // null: none

// Why rows of `weight` (the last axis) cannot go through matrix units within `roundings` + in/16; empty: they can. The
// derivation is in matmul/README.md, which counts three roundings behind the sum.
std::string mma_refusal(const Tensor& weight, int64_t roundings);

int64_t mma_few_waves(const MmaFormat& format, int64_t in, int64_t shared_limit);  // 0: the sums do not fit
int64_t mma_few_shared(const MmaFormat& format, int64_t in, int64_t waves);
int64_t mma_many_waves(const MmaFormat& format, int64_t out, int64_t shared_limit);
int64_t mma_many_shared(const MmaFormat& format, int64_t waves);

// One row of x, or up to eight (mma_one.h): blocks that take 16 weight rows in turn, at most `tiles` times, and waves
// of a block. No blocks: these weights are not for it.
struct MmaOnePlan {
  int64_t blocks = 0, waves = 0, tiles = 0, shared = 0;
};
MmaOnePlan mma_one_plan(const MmaFormat& format, const Tensor& weight, bool alone, int64_t shared_limit,
                        int64_t multiprocessors);

}  // namespace strata
