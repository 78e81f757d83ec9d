#include "ops/qsa_score/device_amd.h"

#include <string>

#include "ops/qsa_score/device_host.h"

namespace strata {

extern const KernelImage kernel_image_score_wmma_gfx;

std::string qsa_score_wmma_refusal(const QsaScoreArgs& args) {
  const int64_t d = args.q.extent(2);
  if (args.pooled.dtype != DType::F16) return "the keys are no f16, this arm multiplies f16 operands";
  if (d != 64 && d != 128) return "keys of " + std::to_string(d) + " dims, this arm has 64 and 128";
  if (!qsa_score_in_pieces(args)) return "the keys do not lie on multiples of 16 bytes";
  return {};
}

void qsa_score_wmma(Queue& queue, const QsaScoreArgs& args) {
  const QsaScoreKernel kernel = qsa_score_kernel(args);
  const int64_t blocks = (kernel.limit + kWmmaBlocks - 1) / kWmmaBlocks;
  const int64_t rows = (kernel.rows + kWmmaQueries - 1) / kWmmaQueries;
  queue.launch("qsa_score", kernel_image_score_wmma_gfx, kernel.d == 64 ? "score_wmma_64" : "score_wmma_128",
               {{blocks * rows}, {kWmmaWaves * queue.accelerator()->info().wave}, kWmmaWaves * 16 * kWmmaPitch * 4},
               kernel);
  qsa_score_spare_rows(queue, args, kernel);
}

}  // namespace strata
