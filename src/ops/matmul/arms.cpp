#include "evidence/arm.h"
#include "ops/matmul/matmul.h"
#include "ops/matmul/parity.h"

namespace strata {

void matmul_portable(Queue& queue, const MatmulArgs& args);  // cpu.cpp
void matmul_avx2(Queue& queue, const MatmulArgs& args);      // lanes.cpp, as the next
void matmul_avx512(Queue& queue, const MatmulArgs& args);
void matmul_avx2_int8(Queue& queue, const MatmulArgs& args);  // int8.cpp, as the next
void matmul_avx512_vnni(Queue& queue, const MatmulArgs& args);
void matmul_avx512_vbmi(Queue& queue, const MatmulArgs& args);
void matmul_device_f32(Queue& queue, const MatmulArgs& args);  // device.cpp
void matmul_device_mma(Queue& queue, const MatmulArgs& args);  // device_mma.cpp, as the next
std::string matmul_mma_refusal(const MatmulArgs& args);
extern const KernelImage kernel_image_matmul_f32, kernel_image_matmul_mma;

namespace {
bool rounds(const MatmulArgs& args) { return is_rounded(args.activations, args.weight.dtype, args.x.extent(1)); }
std::string int8_refusal(const MatmulArgs& args) {
  return rounds(args) ? "" : "it multiplies activations rounded to int8 with weights of whole levels";
}
std::string f32_refusal(const MatmulArgs& args) { return rounds(args) ? "activations are to be rounded to int8" : ""; }
std::string mma_refusal(const MatmulArgs& args) { return rounds(args) ? f32_refusal(args) : matmul_mma_refusal(args); }

constexpr Arm<MatmulArgs> kArms[] = {
    {"mma", mma_refusal, matmul_device_mma, true, false, CpuIsa::Portable, &kernel_image_matmul_mma},
    {"f32", f32_refusal, matmul_device_f32, true, false, CpuIsa::Portable, &kernel_image_matmul_f32},
    {"avx512-vbmi", int8_refusal, matmul_avx512_vbmi, true, false, CpuIsa::Avx512Vbmi},
    {"avx512-vnni", int8_refusal, matmul_avx512_vnni, true, false, CpuIsa::Avx512Vnni},
    {"avx2-int8", int8_refusal, matmul_avx2_int8, true, false, CpuIsa::Avx2},
    {"avx512", f32_refusal, matmul_avx512, true, false, CpuIsa::Avx512},
    {"avx2", f32_refusal, matmul_avx2, true, false, CpuIsa::Avx2},
    {"portable", always_runs<MatmulArgs>, matmul_portable},
};
}  // namespace

void matmul(Queue& queue, const MatmulArgs& args) {
  const int64_t rows = args.x.extent(0), in = args.x.extent(1), out = args.weight.extent(0);
  check_tensor("matmul", "x", args.x, DType::F32, {-1, -1});
  check_shape("matmul", "weight", args.weight, {-1, in});
  check_tensor("matmul", "y", args.y, DType::F32, {rows, out});
  if (!args.bias.empty()) check_tensor("matmul", "bias", args.bias, DType::F32, {out});
  choose_arm<MatmulArgs>(queue, "matmul", kArms, args).run(queue, args);
}

std::span<const Arm<MatmulArgs>> matmul_arms() { return kArms; }

}  // namespace strata
