#include "evidence/arm.h"
#include "ops/gate_act/gate_act.h"
#include "ops/gate_act/parity.h"

namespace strata {

void gate_act_portable(Queue& queue, const GateActArgs& args);  // cpu.cpp, as the next two
void gate_act_avx2(Queue& queue, const GateActArgs& args);
void gate_act_avx512(Queue& queue, const GateActArgs& args);
void residual_add_portable(Queue& queue, const ResidualAddArgs& args);  // cpu.cpp

void gate_act_device(Queue& queue, const GateActArgs& args);          // device.cpp
void residual_add_device(Queue& queue, const ResidualAddArgs& args);  // device.cpp
extern const KernelImage kernel_image_gate_act;

namespace {
constexpr Arm<GateActArgs> kArms[] = {
    {"thread", always_runs<GateActArgs>, gate_act_device, true, false, CpuIsa::Portable, &kernel_image_gate_act},
    {"avx512", always_runs<GateActArgs>, gate_act_avx512, true, false, CpuIsa::Avx512},
    {"avx2", always_runs<GateActArgs>, gate_act_avx2, true, false, CpuIsa::Avx2},
    {"portable", always_runs<GateActArgs>, gate_act_portable}};
constexpr Arm<ResidualAddArgs> kAddArms[] = {{"thread", always_runs<ResidualAddArgs>, residual_add_device, true, false,
                                              CpuIsa::Portable, &kernel_image_gate_act},
                                             {"portable", always_runs<ResidualAddArgs>, residual_add_portable}};
}  // namespace

void gate_act(Queue& queue, const GateActArgs& args) {
  check_tensor("gate_act", "y", args.y, DType::F32, {-1, -1, -1});
  const int64_t rows = args.y.extent(0), groups = args.y.extent(1), width = args.y.extent(2);
  const bool one_gate = args.gate.rank == 3 && args.gate.extent(2) == 1;
  check_tensor("gate_act", "gate", args.gate, DType::F32, {rows, groups, one_gate ? 1 : width});
  if (!args.value.empty()) check_tensor("gate_act", "value", args.value, DType::F32, {rows, groups, width});
  choose_arm<GateActArgs>(queue, "gate_act", kArms, args).run(queue, args);
}

void residual_add(Queue& queue, const Tensor& x, const Tensor& y) {
  if (x.rank != y.rank || x.extents != y.extents || x.dtype != DType::F32 || y.dtype != DType::F32 || !x.contiguous() ||
      !y.contiguous())
    argument_error("residual_add", "x is " + describe(x) + " and y is " + describe(y) +
                                       "; needs two contiguous f32 tensors of one shape");
  const ResidualAddArgs args{make_f32(x.f32(), {x.elements()}), make_f32(y.f32(), {y.elements()})};
  choose_arm<ResidualAddArgs>(queue, "residual_add", kAddArms, args).run(queue, args);
}

std::span<const Arm<GateActArgs>> gate_act_arms() { return kArms; }
std::span<const Arm<ResidualAddArgs>> residual_add_arms() { return kAddArms; }

}  // namespace strata
