#include "evidence/arm.h"
#include "ops/causal_conv/causal_conv.h"
#include "ops/causal_conv/parity.h"

namespace strata {

void causal_conv_portable(Queue& queue, const CausalConvArgs& args);  // cpu.cpp, as the next two
void causal_conv_avx2(Queue& queue, const CausalConvArgs& args);
void causal_conv_avx512(Queue& queue, const CausalConvArgs& args);

void causal_conv_device(Queue& queue, const CausalConvArgs& args);  // device.cpp
extern const KernelImage kernel_image_causal_conv;

namespace {
constexpr Arm<CausalConvArgs> kArms[] = {
    {"thread", always_runs<CausalConvArgs>, causal_conv_device, true, false, CpuIsa::Portable,
     &kernel_image_causal_conv},
    {"avx512", always_runs<CausalConvArgs>, causal_conv_avx512, true, false, CpuIsa::Avx512},
    {"avx2", always_runs<CausalConvArgs>, causal_conv_avx2, true, false, CpuIsa::Avx2},
    {"portable", always_runs<CausalConvArgs>, causal_conv_portable}};
}

void causal_conv(Queue& queue, const CausalConvArgs& args) {
  check_tensor("causal_conv", "x", args.x, DType::F32, {-1, -1});
  const int64_t channels = args.x.extent(1);
  check_tensor("causal_conv", "kernel", args.kernel, DType::F32, {channels, -1});
  const int64_t width = args.kernel.extent(1);
  if (width < 2 || width > 64 || args.dilation < 1)
    argument_error("causal_conv", "needs 2 to 64 taps and a dilation of at least 1, got " + std::to_string(width) +
                                      " and " + std::to_string(args.dilation));
  check_tensor("causal_conv", "history", args.history, DType::F32, {(width - 1) * args.dilation, channels});
  check_tensor("causal_conv", "y", args.y, DType::F32, {args.x.extent(0), channels});
  if (args.y.data == args.x.data) argument_error("causal_conv", "y must not be x");
  choose_arm<CausalConvArgs>(queue, "causal_conv", kArms, args).run(queue, args);
}

std::span<const Arm<CausalConvArgs>> causal_conv_arms() { return kArms; }

}  // namespace strata
