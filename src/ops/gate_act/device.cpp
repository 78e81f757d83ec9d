#include "device/device.h"

#include "ops/device_aligned.h"
#include "ops/gate_act/device_kernel.h"
#include "ops/gate_act/gate_act.h"

namespace strata {

extern const KernelImage kernel_image_gate_act;

namespace {
constexpr int64_t kFloat = sizeof(float), kThreads = 128;
}  // namespace

void gate_act_device(Queue& queue, const GateActArgs& args) {
  const int64_t rows = args.y.extent(0), groups = args.y.extent(1), width = args.y.extent(2);
  const bool one_gate = args.gate.extent(2) == 1;
  const bool vector = width % 4 == 0 && on_sixteen(args.y) && (one_gate || on_sixteen(args.gate)) &&
                      (args.value.empty() || on_sixteen(args.value));
  const int64_t blocks = (width + 4 * kThreads - 1) / (4 * kThreads);
  const GateActKernel kernel{args.gate.f32(),
                             args.value.f32(),
                             args.y.f32(),
                             groups,
                             width,
                             args.gate.stride(0) / kFloat,
                             args.gate.stride(1) / kFloat,
                             args.value.stride(0) / kFloat,
                             args.value.stride(1) / kFloat,
                             args.y.stride(0) / kFloat,
                             args.y.stride(1) / kFloat,
                             blocks,
                             one_gate,
                             args.activation == Activation::Silu,
                             args.accumulate,
                             vector};
  queue.launch("gate_act", kernel_image_gate_act, "gate_act_rows", {{rows * groups * blocks}, {kThreads}}, kernel);
}

void residual_add_device(Queue& queue, const ResidualAddArgs& args) {
  const int64_t elements = args.x.elements();
  const auto address = reinterpret_cast<uintptr_t>(args.x.data) | reinterpret_cast<uintptr_t>(args.y.data);
  queue.launch("residual_add", kernel_image_gate_act, "residual_add_elements",
               {{(elements + 4 * kThreads - 1) / (4 * kThreads)}, {kThreads}},
               ResidualAddKernel{args.x.f32(), args.y.f32(), elements, address % 16 == 0});
}

}  // namespace strata
