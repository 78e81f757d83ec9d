#include "evidence/arm.h"
#include "ops/attention/device.h"
#include "ops/sparse_attention/cells.h"
#include "ops/sparse_attention/parity.h"

namespace strata {

extern const KernelImage kernel_image_attention_fma, kernel_image_attention_mma, kernel_image_attention_stream;

namespace {

constexpr const char* kOp = "sparse_attention";

void run_stream(Queue& queue, const SparseAttentionArgs& args) { cell_attention_stream(queue, kOp, cells_of(args)); }
std::string stream_refusal(const SparseAttentionArgs& args) { return cell_attention_stream_refusal(cells_of(args)); }
void run_mma(Queue& queue, const SparseAttentionArgs& args) { cell_attention_mma(queue, kOp, cells_of(args)); }
std::string mma_refusal(const SparseAttentionArgs& args) { return cell_attention_mma_refusal(cells_of(args)); }
void run_fma(Queue& queue, const SparseAttentionArgs& args) { cell_attention_fma(queue, kOp, cells_of(args)); }

template <const SoftmaxKernel& kernel>
void run(Queue& queue, const SparseAttentionArgs& args) {
  cell_attention(queue, cells_of(args), kernel);
}

constexpr Arm<SparseAttentionArgs> kArms[] = {
    {"stream", stream_refusal, run_stream, true, true, CpuIsa::Portable, &kernel_image_attention_stream, 90},
    {"mma", mma_refusal, run_mma, true, false, CpuIsa::Portable, &kernel_image_attention_mma, 90},
    {"fma", always_runs<SparseAttentionArgs>, run_fma, true, false, CpuIsa::Portable, &kernel_image_attention_fma},
    {"avx512", always_runs<SparseAttentionArgs>, run<kSoftmaxAvx512>, true, false, CpuIsa::Avx512},
    {"avx2", always_runs<SparseAttentionArgs>, run<kSoftmaxAvx2>, true, false, CpuIsa::Avx2},
    {"portable", always_runs<SparseAttentionArgs>, run<kSoftmaxPortable>},
};

// Where the host can read them; kernels trust the lists.
void check_ids(const SparseAttentionArgs& args) {
  const int64_t cells = args.k.extent(0), width = args.ids.extent(1);
  for (int64_t t = 0; t < args.q.extent(0); ++t) {
    const int32_t count = args.counts.as<int32_t>()[t];
    if (count < 0 || count > width)
      argument_error(kOp, "count " + std::to_string(count) + " of row " + std::to_string(t) + " is outside 0.." +
                              std::to_string(width));
    const int32_t* ids = args.ids.row<const int32_t>(t);
    for (int32_t i = 0; i < count; ++i)
      if (ids[i] >= cells || ids[i] < (i == 0 ? 0 : ids[i - 1] + 1))
        argument_error(kOp, "cell " + std::to_string(ids[i]) + " of row " + std::to_string(t) +
                                " is not ascending or not below " + std::to_string(cells));
  }
}

}  // namespace

void sparse_attention(Queue& queue, const SparseAttentionArgs& args) {
  const CellAttention cells = cells_of(args);
  check_cell_attention(kOp, cells);
  check_tensor(kOp, "ids", args.ids, DType::I32, {cells.rows(), -1});
  check_tensor(kOp, "counts", args.counts, DType::I32, {cells.rows()});
  if (queue.accelerator() == nullptr) check_ids(args);
  choose_arm<SparseAttentionArgs>(queue, kOp, kArms, args).run(queue, args);
}

std::span<const Arm<SparseAttentionArgs>> sparse_attention_arms() { return kArms; }

}  // namespace strata
