// only: cuda
// Formats of three bits and fewer, and those with tables, through matrix units.
#include "ops/matmul/device_tile.h"

using namespace strata;
using namespace strata::gpu;

// One line each: the build looks for them.
// clang-format off
extern "C" __global__ void __launch_bounds__(384, 1) matmul_one_q3_k(const MatmulOne a) { matmul_one<Format<kQ3_K>>(a); }
extern "C" __global__ void __launch_bounds__(384, 1) matmul_eight_q3_k(const MatmulOne a) { matmul_eight<Format<kQ3_K>>(a); }
extern "C" __global__ void __launch_bounds__(256, 1) matmul_few_q3_k(const MatmulMma a) { matmul_few<Format<kQ3_K>>(a); }
extern "C" __global__ void __launch_bounds__(256) matmul_many_q3_k(const MatmulMma a) { matmul_many<Format<kQ3_K>>(a); }
extern "C" __global__ void __launch_bounds__(384, 1) matmul_one_iq4_nl(const MatmulOne a) { matmul_one<Format<kIq4Nl>>(a); }
extern "C" __global__ void __launch_bounds__(384, 1) matmul_eight_iq4_nl(const MatmulOne a) { matmul_eight<Format<kIq4Nl>>(a); }
extern "C" __global__ void __launch_bounds__(256, 1) matmul_few_iq4_nl(const MatmulMma a) { matmul_few<Format<kIq4Nl>>(a); }
extern "C" __global__ void __launch_bounds__(256) matmul_many_iq4_nl(const MatmulMma a) { matmul_many<Format<kIq4Nl>>(a); }
extern "C" __global__ void __launch_bounds__(384, 1) matmul_one_iq4_xs(const MatmulOne a) { matmul_one<Format<kIq4Xs>>(a); }
extern "C" __global__ void __launch_bounds__(384, 1) matmul_eight_iq4_xs(const MatmulOne a) { matmul_eight<Format<kIq4Xs>>(a); }
extern "C" __global__ void __launch_bounds__(256, 1) matmul_few_iq4_xs(const MatmulMma a) { matmul_few<Format<kIq4Xs>>(a); }
extern "C" __global__ void __launch_bounds__(256) matmul_many_iq4_xs(const MatmulMma a) { matmul_many<Format<kIq4Xs>>(a); }
extern "C" __global__ void __launch_bounds__(384, 1) matmul_one_iq3_s(const MatmulOne a) { matmul_one<Format<kIq3S>>(a); }
extern "C" __global__ void __launch_bounds__(384, 1) matmul_eight_iq3_s(const MatmulOne a) { matmul_eight<Format<kIq3S>>(a); }
extern "C" __global__ void __launch_bounds__(256, 1) matmul_few_iq3_s(const MatmulMma a) { matmul_few<Format<kIq3S>>(a); }
extern "C" __global__ void __launch_bounds__(256) matmul_many_iq3_s(const MatmulMma a) { matmul_many<Format<kIq3S>>(a); }
extern "C" __global__ void __launch_bounds__(384, 1) matmul_one_iq3_xxs(const MatmulOne a) { matmul_one<Format<kIq3Xxs>>(a); }
extern "C" __global__ void __launch_bounds__(384, 1) matmul_eight_iq3_xxs(const MatmulOne a) { matmul_eight<Format<kIq3Xxs>>(a); }
extern "C" __global__ void __launch_bounds__(256, 1) matmul_few_iq3_xxs(const MatmulMma a) { matmul_few<Format<kIq3Xxs>>(a); }
extern "C" __global__ void __launch_bounds__(256) matmul_many_iq3_xxs(const MatmulMma a) { matmul_many<Format<kIq3Xxs>>(a); }
extern "C" __global__ void __launch_bounds__(384, 1) matmul_one_iq2_xs(const MatmulOne a) { matmul_one<Format<kIq2Xs>>(a); }
extern "C" __global__ void __launch_bounds__(384, 1) matmul_eight_iq2_xs(const MatmulOne a) { matmul_eight<Format<kIq2Xs>>(a); }
extern "C" __global__ void __launch_bounds__(256, 1) matmul_few_iq2_xs(const MatmulMma a) { matmul_few<Format<kIq2Xs>>(a); }
extern "C" __global__ void __launch_bounds__(256) matmul_many_iq2_xs(const MatmulMma a) { matmul_many<Format<kIq2Xs>>(a); }
extern "C" __global__ void __launch_bounds__(384, 1) matmul_one_iq2_s(const MatmulOne a) { matmul_one<Format<kIq2S>>(a); }
extern "C" __global__ void __launch_bounds__(384, 1) matmul_eight_iq2_s(const MatmulOne a) { matmul_eight<Format<kIq2S>>(a); }
extern "C" __global__ void __launch_bounds__(256, 1) matmul_few_iq2_s(const MatmulMma a) { matmul_few<Format<kIq2S>>(a); }
extern "C" __global__ void __launch_bounds__(256) matmul_many_iq2_s(const MatmulMma a) { matmul_many<Format<kIq2S>>(a); }
extern "C" __global__ void __launch_bounds__(384, 1) matmul_one_iq2_xxs(const MatmulOne a) { matmul_one<Format<kIq2Xxs>>(a); }
extern "C" __global__ void __launch_bounds__(384, 1) matmul_eight_iq2_xxs(const MatmulOne a) { matmul_eight<Format<kIq2Xxs>>(a); }
extern "C" __global__ void __launch_bounds__(256, 1) matmul_few_iq2_xxs(const MatmulMma a) { matmul_few<Format<kIq2Xxs>>(a); }
extern "C" __global__ void __launch_bounds__(256) matmul_many_iq2_xxs(const MatmulMma a) { matmul_many<Format<kIq2Xxs>>(a); }
extern "C" __global__ void __launch_bounds__(384, 1) matmul_one_mxfp4(const MatmulOne a) { matmul_one<Format<kMxfp4>>(a); }
extern "C" __global__ void __launch_bounds__(384, 1) matmul_eight_mxfp4(const MatmulOne a) { matmul_eight<Format<kMxfp4>>(a); }
extern "C" __global__ void __launch_bounds__(256, 1) matmul_few_mxfp4(const MatmulMma a) { matmul_few<Format<kMxfp4>>(a); }
extern "C" __global__ void __launch_bounds__(256) matmul_many_mxfp4(const MatmulMma a) { matmul_many<Format<kMxfp4>>(a); }
extern "C" __global__ void __launch_bounds__(384, 1) matmul_one_q2_0(const MatmulOne a) { matmul_one<Format<kQ2_0>>(a); }
extern "C" __global__ void __launch_bounds__(384, 1) matmul_eight_q2_0(const MatmulOne a) { matmul_eight<Format<kQ2_0>>(a); }
extern "C" __global__ void __launch_bounds__(256, 1) matmul_few_q2_0(const MatmulMma a) { matmul_few<Format<kQ2_0>>(a); }
extern "C" __global__ void __launch_bounds__(256) matmul_many_q2_0(const MatmulMma a) { matmul_many<Format<kQ2_0>>(a); }
// clang-format on
