#include "ops/qsa_score/device_amd.h"

#include <string>

#include "ops/qsa_score/device_host.h"

namespace strata {

extern const KernelImage kernel_image_score_wmma_gfx;

std::string qsa_score_wmma_refusal(const QsaScoreArgs& args) {
  const int64_t d = args.q.extent(2);
  if (args.pooled.dtype == DType::F32) return "the keys are f32, this arm multiplies 16-bit operands";
  if (d != 64 && d != 128) return "keys of " + std::to_string(d) + " dims, this arm has 64 and 128";
  if (!qsa_score_in_pieces(args)) return "the keys do not lie on multiples of 16 bytes";
  return {};
}

void qsa_score_wmma(Queue& queue, const QsaScoreArgs& args) {
  constexpr const char* kOp = "qsa_score";
  constexpr int64_t kThreads = 256;
  QsaScoreKernel kernel = qsa_score_kernel(args);
  if (kernel.rows == 0) return;
  const int64_t blocks = (kernel.limit + kWmmaBlocks - 1) / kWmmaBlocks;
  kernel.groups = (kernel.rows + kWmmaQueries - 1) / kWmmaQueries;
  const int64_t operands = kernel.groups * ((kernel.heads + kWmmaHeads - 1) / kWmmaHeads) * 16 * kernel.d;
  kernel.operands = static_cast<char*>(queue.scratch(static_cast<uint64_t>(operands * 2)));
  queue.launch(kOp, kernel_image_score_wmma_gfx, "score_wmma_operands",
               {{(operands + kThreads - 1) / kThreads}, {kThreads}, 0}, kernel);
  const std::string name =
      std::string("score_wmma_") + (kernel.form == 1 ? "bf16_" : "f16_") + std::to_string(kernel.d);
  queue.launch(
      kOp, kernel_image_score_wmma_gfx, name.c_str(),
      {{blocks * kernel.groups}, {kWmmaWaves * queue.accelerator()->info().wave}, kWmmaWaves * 16 * kWmmaPitch * 4},
      kernel);
  qsa_score_spare_rows(queue, args, kernel);
}

}  // namespace strata
