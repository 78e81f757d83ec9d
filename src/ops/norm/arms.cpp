#include "evidence/arm.h"
#include "ops/norm/norm.h"
#include "ops/norm/parity.h"

namespace strata {

void norm_portable(Queue& queue, const NormArgs& args);  // cpu.cpp, as the next two
void norm_avx2(Queue& queue, const NormArgs& args);
void norm_avx512(Queue& queue, const NormArgs& args);
void norm_device(Queue& queue, const NormArgs& args);  // device.cpp
extern const KernelImage kernel_image_norm;

namespace {
constexpr Arm<NormArgs> kArms[] = {
    {"block", always_runs<NormArgs>, norm_device, true, false, CpuIsa::Portable, &kernel_image_norm},
    {"avx512", always_runs<NormArgs>, norm_avx512, true, false, CpuIsa::Avx512},
    {"avx2", always_runs<NormArgs>, norm_avx2, true, false, CpuIsa::Avx2},
    {"portable", always_runs<NormArgs>, norm_portable},
};
}

void norm(Queue& queue, const NormArgs& args) {
  check_tensor("norm", "x", args.x, DType::F32, {-1, -1, -1});
  const int64_t groups = args.x.extent(1), width = args.x.extent(2);
  if (args.weight.rank == 2)
    check_tensor("norm", "weight", args.weight, DType::F32, {groups, width});
  else
    check_tensor("norm", "weight", args.weight, DType::F32, {width});
  check_tensor("norm", "y", args.y, DType::F32, {args.x.extent(0), groups, width});
  if (!(args.eps > 0)) argument_error("norm", "eps must be positive");
  choose_arm<NormArgs>(queue, "norm", kArms, args).run(queue, args);
}

std::span<const Arm<NormArgs>> norm_arms() { return kArms; }

}  // namespace strata
