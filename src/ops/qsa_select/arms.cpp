#include <algorithm>

#include "ops/qsa_select/parity.h"

namespace strata {

void qsa_select_portable(Queue& queue, const QsaSelectArgs& args);  // rows.cpp
void qsa_select_avx2(Queue& queue, const QsaSelectArgs& args);
void qsa_select_avx512(Queue& queue, const QsaSelectArgs& args);
void qsa_select_radix(Queue& queue, const QsaSelectArgs& args);  // device.cpp
void qsa_select_sieve(Queue& queue, const QsaSelectArgs& args);
std::string qsa_select_sieve_refusal(const QsaSelectArgs& args);
extern const KernelImage kernel_image_qsa_select;

namespace {
constexpr Arm<QsaSelectArgs> kArms[] = {
    {"sieve", qsa_select_sieve_refusal, qsa_select_sieve, true, false, CpuIsa::Portable, &kernel_image_qsa_select},
    {"radix", always_runs<QsaSelectArgs>, qsa_select_radix, true, false, CpuIsa::Portable, &kernel_image_qsa_select},
    {"avx512", always_runs<QsaSelectArgs>, qsa_select_avx512, true, false, CpuIsa::Avx512},
    {"avx2", always_runs<QsaSelectArgs>, qsa_select_avx2, true, false, CpuIsa::Avx2},
    {"portable", always_runs<QsaSelectArgs>, qsa_select_portable},
};

// Where the host can read them; kernels take what fits.
void check_cells(const QsaSelectArgs& args) {
  for (int64_t t = 0; t < args.scores.extent(0); ++t) {
    const int64_t n_kv = args.n_kv.as<int32_t>()[t];
    const int64_t width = std::min<int64_t>(n_kv, int64_t{args.budget} + args.ratio - 1);
    if (n_kv < 0 || n_kv / args.ratio > args.scores.extent(1) || width > args.ids.extent(1))
      argument_error("qsa_select", "n_kv " + std::to_string(n_kv) + " of row " + std::to_string(t) +
                                       " does not fit scores " + describe(args.scores) + " and ids " +
                                       describe(args.ids));
  }
}

}  // namespace

std::span<const Arm<QsaSelectArgs>> qsa_select_arms() { return kArms; }

void qsa_select(Queue& queue, const QsaSelectArgs& args) {
  check_tensor("qsa_select", "scores", args.scores, DType::F32, {-1, -1});
  const int64_t rows = args.scores.extent(0);
  check_tensor("qsa_select", "n_kv", args.n_kv, DType::I32, {rows});
  check_tensor("qsa_select", "ids", args.ids, DType::I32, {rows, -1});
  check_tensor("qsa_select", "counts", args.counts, DType::I32, {rows});
  if (!args.thresholds.empty()) check_tensor("qsa_select", "thresholds", args.thresholds, DType::I32, {rows});
  if (args.ratio < 1 || args.budget < args.ratio || args.budget % args.ratio != 0)
    argument_error("qsa_select", "budget " + std::to_string(args.budget) + " is no positive multiple of the ratio " +
                                     std::to_string(args.ratio));
  if (queue.accelerator() == nullptr) check_cells(args);
  choose_arm<QsaSelectArgs>(queue, "qsa_select", kArms, args).run(queue, args);
}

}  // namespace strata
