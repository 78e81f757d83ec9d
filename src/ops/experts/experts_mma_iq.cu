// only: cuda
// Formats of three bits and fewer, and those with tables, through matrix units.
#include "ops/experts/device_tile.h"

using namespace strata;
using namespace strata::gpu;

// One line each: the build looks for them.
// clang-format off
extern "C" __global__ void __launch_bounds__(384, 1) experts_one_q3_k(const ExpertsOne a) { product_one<Format<kQ3_K>>(a); }
extern "C" __global__ void __launch_bounds__(256, 1) experts_few_q3_k(const ExpertsProduct a) { product_few<Format<kQ3_K>>(a); }
extern "C" __global__ void __launch_bounds__(256) experts_many_q3_k(const ExpertsProduct a) { product_many<Format<kQ3_K>>(a); }
extern "C" __global__ void __launch_bounds__(384, 1) experts_one_iq4_nl(const ExpertsOne a) { product_one<Format<kIq4Nl>>(a); }
extern "C" __global__ void __launch_bounds__(256, 1) experts_few_iq4_nl(const ExpertsProduct a) { product_few<Format<kIq4Nl>>(a); }
extern "C" __global__ void __launch_bounds__(256) experts_many_iq4_nl(const ExpertsProduct a) { product_many<Format<kIq4Nl>>(a); }
extern "C" __global__ void __launch_bounds__(384, 1) experts_one_iq4_xs(const ExpertsOne a) { product_one<Format<kIq4Xs>>(a); }
extern "C" __global__ void __launch_bounds__(256, 1) experts_few_iq4_xs(const ExpertsProduct a) { product_few<Format<kIq4Xs>>(a); }
extern "C" __global__ void __launch_bounds__(256) experts_many_iq4_xs(const ExpertsProduct a) { product_many<Format<kIq4Xs>>(a); }
extern "C" __global__ void __launch_bounds__(384, 1) experts_one_iq3_s(const ExpertsOne a) { product_one<Format<kIq3S>>(a); }
extern "C" __global__ void __launch_bounds__(256, 1) experts_few_iq3_s(const ExpertsProduct a) { product_few<Format<kIq3S>>(a); }
extern "C" __global__ void __launch_bounds__(256) experts_many_iq3_s(const ExpertsProduct a) { product_many<Format<kIq3S>>(a); }
extern "C" __global__ void __launch_bounds__(384, 1) experts_one_iq3_xxs(const ExpertsOne a) { product_one<Format<kIq3Xxs>>(a); }
extern "C" __global__ void __launch_bounds__(256, 1) experts_few_iq3_xxs(const ExpertsProduct a) { product_few<Format<kIq3Xxs>>(a); }
extern "C" __global__ void __launch_bounds__(256) experts_many_iq3_xxs(const ExpertsProduct a) { product_many<Format<kIq3Xxs>>(a); }
extern "C" __global__ void __launch_bounds__(384, 1) experts_one_iq2_xs(const ExpertsOne a) { product_one<Format<kIq2Xs>>(a); }
extern "C" __global__ void __launch_bounds__(256, 1) experts_few_iq2_xs(const ExpertsProduct a) { product_few<Format<kIq2Xs>>(a); }
extern "C" __global__ void __launch_bounds__(256) experts_many_iq2_xs(const ExpertsProduct a) { product_many<Format<kIq2Xs>>(a); }
extern "C" __global__ void __launch_bounds__(384, 1) experts_one_iq2_s(const ExpertsOne a) { product_one<Format<kIq2S>>(a); }
extern "C" __global__ void __launch_bounds__(256, 1) experts_few_iq2_s(const ExpertsProduct a) { product_few<Format<kIq2S>>(a); }
extern "C" __global__ void __launch_bounds__(256) experts_many_iq2_s(const ExpertsProduct a) { product_many<Format<kIq2S>>(a); }
extern "C" __global__ void __launch_bounds__(384, 1) experts_one_iq2_xxs(const ExpertsOne a) { product_one<Format<kIq2Xxs>>(a); }
extern "C" __global__ void __launch_bounds__(256, 1) experts_few_iq2_xxs(const ExpertsProduct a) { product_few<Format<kIq2Xxs>>(a); }
extern "C" __global__ void __launch_bounds__(256) experts_many_iq2_xxs(const ExpertsProduct a) { product_many<Format<kIq2Xxs>>(a); }
extern "C" __global__ void __launch_bounds__(384, 1) experts_one_mxfp4(const ExpertsOne a) { product_one<Format<kMxfp4>>(a); }
extern "C" __global__ void __launch_bounds__(256, 1) experts_few_mxfp4(const ExpertsProduct a) { product_few<Format<kMxfp4>>(a); }
extern "C" __global__ void __launch_bounds__(256) experts_many_mxfp4(const ExpertsProduct a) { product_many<Format<kMxfp4>>(a); }
extern "C" __global__ void __launch_bounds__(384, 1) experts_one_q2_0(const ExpertsOne a) { product_one<Format<kQ2_0>>(a); }
extern "C" __global__ void __launch_bounds__(256, 1) experts_few_q2_0(const ExpertsProduct a) { product_few<Format<kQ2_0>>(a); }
extern "C" __global__ void __launch_bounds__(256) experts_many_q2_0(const ExpertsProduct a) { product_many<Format<kQ2_0>>(a); }
// clang-format on
