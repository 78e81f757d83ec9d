#include "evidence/arm.h"
#include "ops/argmax/argmax.h"
#include "ops/argmax/parity.h"

namespace strata {

void argmax_portable(Queue& queue, const ArgmaxArgs& args);  // cpu.cpp
void argmax_device(Queue& queue, const ArgmaxArgs& args);    // device.cpp
extern const KernelImage kernel_image_argmax;

namespace {
constexpr Arm<ArgmaxArgs> kArms[] = {
    {"blocks", always_runs<ArgmaxArgs>, argmax_device, true, false, CpuIsa::Portable, &kernel_image_argmax},
    {"portable", always_runs<ArgmaxArgs>, argmax_portable},
};
}

void argmax(Queue& queue, const ArgmaxArgs& args) {
  check_tensor("argmax", "logits", args.logits, DType::F32, {-1, -1});
  const int64_t rows = args.logits.extent(0), vocabulary = args.logits.extent(1);
  if (vocabulary < 1 || vocabulary > 0x7ffffffe)
    argument_error("argmax", "rows of " + std::to_string(vocabulary) + " logits; 1 to 2147483646");
  if (!args.allowed.empty()) check_tensor("argmax", "allowed", args.allowed, DType::I32, {(vocabulary + 31) / 32});
  check_tensor("argmax", "ids", args.ids, DType::I32, {rows, 1});
  choose_arm<ArgmaxArgs>(queue, "argmax", kArms, args).run(queue, args);
}

std::span<const Arm<ArgmaxArgs>> argmax_arms() { return kArms; }

}  // namespace strata
