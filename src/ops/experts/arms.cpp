#include "evidence/arm.h"
#include "ops/experts/experts.h"
#include "ops/experts/parity.h"

namespace strata {

void experts_portable(Queue& queue, const ExpertsArgs& args);  // cpu.cpp
void experts_avx2(Queue& queue, const ExpertsArgs& args);      // lanes.cpp, as the next
void experts_avx512(Queue& queue, const ExpertsArgs& args);
void experts_avx2_int8(Queue& queue, const ExpertsArgs& args);
void experts_avx512_vnni(Queue& queue, const ExpertsArgs& args);
void experts_avx512_vbmi(Queue& queue, const ExpertsArgs& args);
void experts_device_f32(Queue& queue, const ExpertsArgs& args);  // device.cpp, as the next
void experts_device_mma(Queue& queue, const ExpertsArgs& args);
std::string experts_mma_refusal(const ExpertsArgs& args);
std::string experts_device_refusal(const ExpertsArgs& args);
extern const KernelImage kernel_image_experts_f32, kernel_image_experts_mma;

namespace {
bool rounds(const ExpertsArgs& args) {
  const auto one = [&](const Tensor& weights) {
    return is_rounded(args.activations, weights.dtype, weights.extent(2));
  };
  return one(args.gate) || one(args.up) || one(args.down);
}
std::string int8_refusal(const ExpertsArgs& args) {
  return rounds(args) ? "" : "it multiplies activations rounded to int8 with weights of whole levels";
}
std::string lanes_refusal(const ExpertsArgs& args) {
  return rounds(args) ? "activations are to be rounded to int8" : "";
}
std::string f32_refusal(const ExpertsArgs& args) {
  return rounds(args) ? lanes_refusal(args) : experts_device_refusal(args);
}
std::string mma_refusal(const ExpertsArgs& args) {
  return rounds(args) ? lanes_refusal(args) : experts_mma_refusal(args);
}

constexpr Arm<ExpertsArgs> kArms[] = {
    {"mma", mma_refusal, experts_device_mma, true, false, CpuIsa::Portable, &kernel_image_experts_mma},
    {"f32", f32_refusal, experts_device_f32, true, false, CpuIsa::Portable, &kernel_image_experts_f32},
    {"avx512-vbmi", int8_refusal, experts_avx512_vbmi, true, false, CpuIsa::Avx512Vbmi},
    {"avx512-vnni", int8_refusal, experts_avx512_vnni, true, false, CpuIsa::Avx512Vnni},
    {"avx2-int8", int8_refusal, experts_avx2_int8, true, false, CpuIsa::Avx2},
    {"avx512", lanes_refusal, experts_avx512, true, false, CpuIsa::Avx512},
    {"avx2", lanes_refusal, experts_avx2, true, false, CpuIsa::Avx2},
    {"portable", always_runs<ExpertsArgs>, experts_portable},
};

// Ids in the memory of an accelerator are checked by its kernels.
void check_ids(const ExpertsArgs& args) {
  const int64_t count = args.gate.extent(0);
  for (int64_t t = 0; t < args.ids.extent(0); ++t)
    for (int64_t i = 0; i < args.ids.extent(1); ++i)
      if (const int32_t id = args.ids.row<const int32_t>(t)[i]; id < 0 || id >= count)
        argument_error("experts", "expert " + std::to_string(id) + " of row " + std::to_string(t) + " is not one of " +
                                      std::to_string(count));
}
}  // namespace

void experts(Queue& queue, const ExpertsArgs& args) {
  check_tensor("experts", "x", args.x, DType::F32, {-1, -1});
  const int64_t rows = args.x.extent(0), hidden = args.x.extent(1);
  check_tensor("experts", "ids", args.ids, DType::I32, {rows, -1});
  check_tensor("experts", "weights", args.weights, DType::F32, {rows, args.ids.extent(1)});
  check_shape("experts", "gate", args.gate, {-1, -1, hidden});
  const int64_t count = args.gate.extent(0), inner = args.gate.extent(1);
  check_shape("experts", "up", args.up, {count, inner, hidden});
  check_shape("experts", "down", args.down, {count, hidden, inner});
  check_tensor("experts", "y", args.y, DType::F32, {rows, hidden});
  if (!args.gate_scale.empty()) check_tensor("experts", "gate_scale", args.gate_scale, DType::F32, {count});
  if (!args.up_scale.empty()) check_tensor("experts", "up_scale", args.up_scale, DType::F32, {count});
  if (!args.down_scale.empty()) check_tensor("experts", "down_scale", args.down_scale, DType::F32, {count});
  if (queue.accelerator() == nullptr) check_ids(args);
  choose_arm<ExpertsArgs>(queue, "experts", kArms, args).run(queue, args);
}

std::span<const Arm<ExpertsArgs>> experts_arms() { return kArms; }

}  // namespace strata
