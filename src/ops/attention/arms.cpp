#include "evidence/arm.h"
#include "ops/attention/attention.h"
#include "ops/attention/device.h"
#include "ops/attention/parity.h"
#include "ops/attention/softmax.h"

namespace strata {

extern const KernelImage kernel_image_attention_fma, kernel_image_attention_mma, kernel_image_attention_stream;

namespace {

constexpr const char* kOp = "attention";

void run_stream(Queue& queue, const AttentionArgs& args) { cell_attention_stream(queue, kOp, cells_of(args)); }
std::string stream_refusal(const AttentionArgs& args) { return cell_attention_stream_refusal(cells_of(args)); }
void run_mma(Queue& queue, const AttentionArgs& args) { cell_attention_mma(queue, kOp, cells_of(args)); }
std::string mma_refusal(const AttentionArgs& args) { return cell_attention_mma_refusal(cells_of(args)); }
void run_fma(Queue& queue, const AttentionArgs& args) { cell_attention_fma(queue, kOp, cells_of(args)); }

template <const SoftmaxKernel& kernel>
void run(Queue& queue, const AttentionArgs& args) {
  cell_attention(queue, cells_of(args), kernel);
}

constexpr Arm<AttentionArgs> kArms[] = {
    {"stream", stream_refusal, run_stream, true, true, CpuIsa::Portable, &kernel_image_attention_stream, 90},
    {"mma", mma_refusal, run_mma, true, false, CpuIsa::Portable, &kernel_image_attention_mma, 90},
    {"fma", always_runs<AttentionArgs>, run_fma, true, false, CpuIsa::Portable, &kernel_image_attention_fma},
    {"avx512", always_runs<AttentionArgs>, run<kSoftmaxAvx512>, true, false, CpuIsa::Avx512},
    {"avx2", always_runs<AttentionArgs>, run<kSoftmaxAvx2>, true, false, CpuIsa::Avx2},
    {"portable", always_runs<AttentionArgs>, run<kSoftmaxPortable>},
};

// Where the host can read them; kernels take the cells that there are.
void check_counts(const CellAttention& args) {
  for (int64_t t = 0; t < args.rows(); ++t)
    if (const int64_t n = args.count(t); n < 0 || n > args.k.extent(0))
      argument_error(kOp, "n_kv " + std::to_string(n) + " of row " + std::to_string(t) + " is outside 0.." +
                              std::to_string(args.k.extent(0)));
}

}  // namespace

CellAttention cells_of(const AttentionArgs& args) {
  return {args.q, args.k, args.v, args.n_kv, {}, args.scale, args.out, args.lse, args.k_pages, args.v_pages};
}

void attention(Queue& queue, const AttentionArgs& args) {
  const CellAttention cells = cells_of(args);
  check_cell_attention(kOp, cells);
  check_tensor(kOp, "n_kv", args.n_kv, DType::I32, {cells.rows()});
  if (queue.accelerator() == nullptr) check_counts(cells);
  choose_arm<AttentionArgs>(queue, kOp, kArms, args).run(queue, args);
}

std::span<const Arm<AttentionArgs>> attention_arms() { return kArms; }

}  // namespace strata
