// only: cuda
// The formats of most files through matrix units.
#include "ops/matmul/device_tile.h"

using namespace strata;
using namespace strata::gpu;

extern "C" __global__ void matmul_split(const MatmulSplit a) {
  const int64_t i = block_x() * threads() + thread(), row = i / 4 % a.padded, group = i / 4 / a.padded;
  if (group >= a.groups) return;  // padded rows come by eight: whole waves
  split_rows(row < a.rows ? a.x + row * a.x_row : nullptr, group, row, static_cast<int>(i % 4),
             {a.parts, a.sums, a.padded});
}

extern "C" __global__ void matmul_split_one(const MatmulOneSplit a) {
  const int64_t i = block_x() * threads() + thread(), row = i / 4 / a.groups;
  const auto group = static_cast<int>(i / 4 % a.groups);
  split_group(a.x + row * a.x_row, row, group, static_cast<int>(i % 4), row < a.rows,
              {a.parts, a.sums, static_cast<int>(a.groups)});
}

// One line each: the build looks for them.
// clang-format off
extern "C" __global__ void __launch_bounds__(384, 1) matmul_one_q8_0(const MatmulOne a) { matmul_one<Format<kQ8_0>>(a); }
extern "C" __global__ void __launch_bounds__(384, 1) matmul_eight_q8_0(const MatmulOne a) { matmul_eight<Format<kQ8_0>>(a); }
extern "C" __global__ void __launch_bounds__(256, 1) matmul_few_q8_0(const MatmulMma a) { matmul_few<Format<kQ8_0>>(a); }
extern "C" __global__ void __launch_bounds__(256) matmul_many_q8_0(const MatmulMma a) { matmul_many<Format<kQ8_0>>(a); }
extern "C" __global__ void __launch_bounds__(384, 1) matmul_one_q4_0(const MatmulOne a) { matmul_one<Format<kQ4_0>>(a); }
extern "C" __global__ void __launch_bounds__(384, 1) matmul_eight_q4_0(const MatmulOne a) { matmul_eight<Format<kQ4_0>>(a); }
extern "C" __global__ void __launch_bounds__(256, 1) matmul_few_q4_0(const MatmulMma a) { matmul_few<Format<kQ4_0>>(a); }
extern "C" __global__ void __launch_bounds__(256) matmul_many_q4_0(const MatmulMma a) { matmul_many<Format<kQ4_0>>(a); }
extern "C" __global__ void __launch_bounds__(384, 1) matmul_one_q4_k(const MatmulOne a) { matmul_one<Format<kQ4_K>>(a); }
extern "C" __global__ void __launch_bounds__(384, 1) matmul_eight_q4_k(const MatmulOne a) { matmul_eight<Format<kQ4_K>>(a); }
extern "C" __global__ void __launch_bounds__(256, 1) matmul_few_q4_k(const MatmulMma a) { matmul_few<Format<kQ4_K>>(a); }
extern "C" __global__ void __launch_bounds__(256) matmul_many_q4_k(const MatmulMma a) { matmul_many<Format<kQ4_K>>(a); }
extern "C" __global__ void __launch_bounds__(384, 1) matmul_one_q5_k(const MatmulOne a) { matmul_one<Format<kQ5_K>>(a); }
extern "C" __global__ void __launch_bounds__(384, 1) matmul_eight_q5_k(const MatmulOne a) { matmul_eight<Format<kQ5_K>>(a); }
extern "C" __global__ void __launch_bounds__(256, 1) matmul_few_q5_k(const MatmulMma a) { matmul_few<Format<kQ5_K>>(a); }
extern "C" __global__ void __launch_bounds__(256) matmul_many_q5_k(const MatmulMma a) { matmul_many<Format<kQ5_K>>(a); }
extern "C" __global__ void __launch_bounds__(384, 1) matmul_one_q6_k(const MatmulOne a) { matmul_one<Format<kQ6_K>>(a); }
extern "C" __global__ void __launch_bounds__(384, 1) matmul_eight_q6_k(const MatmulOne a) { matmul_eight<Format<kQ6_K>>(a); }
extern "C" __global__ void __launch_bounds__(256, 1) matmul_few_q6_k(const MatmulMma a) { matmul_few<Format<kQ6_K>>(a); }
extern "C" __global__ void __launch_bounds__(256) matmul_many_q6_k(const MatmulMma a) { matmul_many<Format<kQ6_K>>(a); }
extern "C" __global__ void __launch_bounds__(384, 1) matmul_one_bf16(const MatmulOne a) { matmul_one<Format<kBf16>>(a); }
extern "C" __global__ void __launch_bounds__(384, 1) matmul_eight_bf16(const MatmulOne a) { matmul_eight<Format<kBf16>>(a); }
extern "C" __global__ void __launch_bounds__(256, 1) matmul_few_bf16(const MatmulMma a) { matmul_few<Format<kBf16>>(a); }
extern "C" __global__ void __launch_bounds__(256) matmul_many_bf16(const MatmulMma a) { matmul_many<Format<kBf16>>(a); }
// clang-format on
