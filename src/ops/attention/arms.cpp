#include "evidence/arm.h"
#include "ops/attention/attention.h"
#include "ops/attention/parity.h"
#include "ops/attention/softmax.h"

namespace strata {
namespace {

template <const SoftmaxKernel& kernel>
void run(Queue& queue, const AttentionArgs& args) {
  cell_attention(queue, cells_of(args), kernel);
}

constexpr Arm<AttentionArgs> kArms[] = {
    {"avx512", always_runs<AttentionArgs>, run<kSoftmaxAvx512>, true, false, CpuIsa::Avx512},
    {"avx2", always_runs<AttentionArgs>, run<kSoftmaxAvx2>, true, false, CpuIsa::Avx2},
    {"portable", always_runs<AttentionArgs>, run<kSoftmaxPortable>},
};

}  // namespace

CellAttention cells_of(const AttentionArgs& args) {
  return {args.q, args.k, args.v, args.n_kv, {}, args.scale, args.out, args.lse, args.k_pages, args.v_pages};
}

void attention(Queue& queue, const AttentionArgs& args) {
  const CellAttention cells = cells_of(args);
  check_cell_attention("attention", cells);
  check_tensor("attention", "n_kv", args.n_kv, DType::I32, {cells.rows()});
  for (int64_t t = 0; t < cells.rows(); ++t)
    if (const int64_t n = cells.count(t); n < 0 || n > args.k.extent(0))
      argument_error("attention", "n_kv " + std::to_string(n) + " of row " + std::to_string(t) + " is outside 0.." +
                                      std::to_string(args.k.extent(0)));
  choose_arm<AttentionArgs>(queue, "attention", kArms, args).run(queue, args);
}

std::span<const Arm<AttentionArgs>> attention_arms() { return kArms; }

}  // namespace strata
