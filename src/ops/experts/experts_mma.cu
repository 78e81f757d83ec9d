// only: cuda
// Products of experts through matrix units: the formats of most files, and what is around the products.
#include "device/kernel_math.h"
#include "ops/experts/device_tile.h"

using namespace strata;
using namespace strata::gpu;

// x, or what the gates let through, in three parts: one thread for each (group, row, lane of four).
extern "C" __global__ void experts_split(const ExpertsSplit a) {
  const int64_t i = block_x() * threads() + thread(), row = i / 4 % a.padded, group = i / 4 / a.padded;
  if (group >= a.groups) return;  // padded rows come by eight: whole waves
  split_rows(row < a.rows ? a.x + row * a.x_row : nullptr, group, row, static_cast<int>(i % 4),
             {a.parts, a.sums, a.padded});
}

// gate = silu(gate) · up
extern "C" __global__ void experts_gate(const ExpertsGate a) {
  const int64_t i = block_x() * threads() + thread();
  if (i < a.elements) a.gate[i] = mul_f32(silu_f32(a.gate[i]), a.up[i]);
}

// One line each: the build looks for them.
// clang-format off
extern "C" __global__ void __launch_bounds__(384, 1) experts_one_q8_0(const ExpertsOne a) { product_one<Format<kQ8_0>>(a); }
extern "C" __global__ void __launch_bounds__(256, 1) experts_few_q8_0(const ExpertsProduct a) { product_few<Format<kQ8_0>>(a); }
extern "C" __global__ void __launch_bounds__(256) experts_many_q8_0(const ExpertsProduct a) { product_many<Format<kQ8_0>>(a); }
extern "C" __global__ void __launch_bounds__(384, 1) experts_one_q4_0(const ExpertsOne a) { product_one<Format<kQ4_0>>(a); }
extern "C" __global__ void __launch_bounds__(256, 1) experts_few_q4_0(const ExpertsProduct a) { product_few<Format<kQ4_0>>(a); }
extern "C" __global__ void __launch_bounds__(256) experts_many_q4_0(const ExpertsProduct a) { product_many<Format<kQ4_0>>(a); }
extern "C" __global__ void __launch_bounds__(384, 1) experts_one_q4_k(const ExpertsOne a) { product_one<Format<kQ4_K>>(a); }
extern "C" __global__ void __launch_bounds__(256, 1) experts_few_q4_k(const ExpertsProduct a) { product_few<Format<kQ4_K>>(a); }
extern "C" __global__ void __launch_bounds__(256) experts_many_q4_k(const ExpertsProduct a) { product_many<Format<kQ4_K>>(a); }
extern "C" __global__ void __launch_bounds__(384, 1) experts_one_q5_k(const ExpertsOne a) { product_one<Format<kQ5_K>>(a); }
extern "C" __global__ void __launch_bounds__(256, 1) experts_few_q5_k(const ExpertsProduct a) { product_few<Format<kQ5_K>>(a); }
extern "C" __global__ void __launch_bounds__(256) experts_many_q5_k(const ExpertsProduct a) { product_many<Format<kQ5_K>>(a); }
extern "C" __global__ void __launch_bounds__(384, 1) experts_one_q6_k(const ExpertsOne a) { product_one<Format<kQ6_K>>(a); }
extern "C" __global__ void __launch_bounds__(256, 1) experts_few_q6_k(const ExpertsProduct a) { product_few<Format<kQ6_K>>(a); }
extern "C" __global__ void __launch_bounds__(256) experts_many_q6_k(const ExpertsProduct a) { product_many<Format<kQ6_K>>(a); }
extern "C" __global__ void __launch_bounds__(384, 1) experts_one_bf16(const ExpertsOne a) { product_one<Format<kBf16>>(a); }
extern "C" __global__ void __launch_bounds__(256, 1) experts_few_bf16(const ExpertsProduct a) { product_few<Format<kBf16>>(a); }
extern "C" __global__ void __launch_bounds__(256) experts_many_bf16(const ExpertsProduct a) { product_many<Format<kBf16>>(a); }
// clang-format on
