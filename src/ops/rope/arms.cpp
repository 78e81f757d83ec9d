#include "evidence/arm.h"
#include "ops/rope/parity.h"
#include "ops/rope/rope.h"

namespace strata {

void rope_portable(Queue& queue, const RopeArgs& args);  // cpu.cpp

std::string rope_device_refusal(const RopeArgs& args);  // device.cpp
void rope_device(Queue& queue, const RopeArgs& args);   // device.cpp
extern const KernelImage kernel_image_rope;

namespace {
constexpr Arm<RopeArgs> kArms[] = {
    {"thread", rope_device_refusal, rope_device, true, false, CpuIsa::Portable, &kernel_image_rope},
    {"portable", always_runs<RopeArgs>, rope_portable}};
}

void rope(Queue& queue, const RopeArgs& args) {
  check_tensor("rope", "x", args.x, DType::F32, {-1, -1, -1});
  check_tensor("rope", "cos", args.cos, DType::F32, {args.x.extent(0), -1});
  check_tensor("rope", "sin", args.sin, DType::F32, {args.x.extent(0), args.cos.extent(1)});
  if (args.cos.extent(1) * 2 > args.x.extent(2))
    argument_error("rope", std::to_string(args.cos.extent(1) * 2) + " rotary dims do not fit in heads of " +
                               std::to_string(args.x.extent(2)));
  choose_arm<RopeArgs>(queue, "rope", kArms, args).run(queue, args);
}

std::span<const Arm<RopeArgs>> rope_arms() { return kArms; }

}  // namespace strata
