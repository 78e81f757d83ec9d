#include <algorithm>

#include "base/fault.h"
#include "ops/qsa_score/parity.h"

namespace strata {

void qsa_score_portable(Queue& queue, const QsaScoreArgs& args);  // cpu.cpp
void qsa_score_dead_rows(const QsaScoreArgs& args);               // dead.cpp
void qsa_score_avx2(Queue& queue, const QsaScoreArgs& args);      // cpu_simd.cpp
void qsa_score_avx512(Queue& queue, const QsaScoreArgs& args);
void qsa_score_avx512bf16(Queue& queue, const QsaScoreArgs& args);
void qsa_score_mma(Queue& queue, const QsaScoreArgs& args);  // device.cpp
void qsa_score_fma(Queue& queue, const QsaScoreArgs& args);
void qsa_score_wmma(Queue& queue, const QsaScoreArgs& args);  // device_amd.cpp
std::string qsa_score_mma_refusal(const QsaScoreArgs& args);
std::string qsa_score_wmma_refusal(const QsaScoreArgs& args);
extern const KernelImage kernel_image_qsa_score_mma, kernel_image_qsa_score_fma, kernel_image_score_wmma_gfx;

namespace {

// Fault::WritePastSet: one entry behind each row's.
void write_past_set(const QsaScoreArgs& args) {
  for (int64_t t = 0; t < args.scores.extent(0); ++t) {
    const int64_t behind = args.n_kv.as<int32_t>()[t] / args.ratio + (args.dead.empty() ? 0 : 1);
    if (behind < args.scores.extent(1)) args.scores.row<float>(t)[behind] = 0;
  }
}

// Where the host can read them; kernels take what fits.
void check_cells(const QsaScoreArgs& args) {
  const int64_t limit = std::min(args.pooled.extent(0), args.scores.extent(1) - (args.dead.empty() ? 0 : 1));
  for (int64_t t = 0; t < args.q.extent(0); ++t)
    if (const int64_t cells = args.n_kv.as<int32_t>()[t]; cells < 0 || cells / args.ratio > limit)
      argument_error("qsa_score", "n_kv " + std::to_string(cells) + " of row " + std::to_string(t) + " does not fit " +
                                      std::to_string(limit) + " blocks of " + std::to_string(args.ratio) + " cells");
}

std::string needs_bf16(const QsaScoreArgs& args) {
  if (args.pooled.dtype == DType::BF16) return {};
  return "the keys are " + std::string(to_string(args.pooled.dtype)) + ", this arm multiplies bf16";
}

constexpr Arm<QsaScoreArgs> kArms[] = {
    {"mma", qsa_score_mma_refusal, qsa_score_mma, true, false, CpuIsa::Portable, &kernel_image_qsa_score_mma},
    {"fma", always_runs<QsaScoreArgs>, qsa_score_fma, true, false, CpuIsa::Portable, &kernel_image_qsa_score_fma},
    {"wmma", qsa_score_wmma_refusal, qsa_score_wmma, true, true, CpuIsa::Portable, &kernel_image_score_wmma_gfx},
    {"avx512bf16", needs_bf16, qsa_score_avx512bf16, true, false, CpuIsa::Avx512Bf16},
    {"avx512", always_runs<QsaScoreArgs>, qsa_score_avx512, true, false, CpuIsa::Avx512},
    {"avx2", always_runs<QsaScoreArgs>, qsa_score_avx2, true, false, CpuIsa::Avx2},
    {"portable", always_runs<QsaScoreArgs>, qsa_score_portable},
};

}  // namespace

std::span<const Arm<QsaScoreArgs>> qsa_score_arms() { return kArms; }

void qsa_score(Queue& queue, const QsaScoreArgs& args) {
  check_tensor("qsa_score", "q", args.q, DType::F32, {-1, -1, -1});
  const int64_t rows = args.q.extent(0), d = args.q.extent(2);
  const DType form = args.pooled.dtype;
  check_tensor("qsa_score", "pooled", args.pooled, form == DType::BF16 || form == DType::F16 ? form : DType::F32,
               {-1, d});
  if (!args.dead.empty()) check_tensor("qsa_score", "dead", args.dead, form, {d});
  check_tensor("qsa_score", "n_kv", args.n_kv, DType::I32, {rows});
  check_tensor("qsa_score", "scores", args.scores, DType::F32, {rows, -1});
  if (args.ratio < 1) argument_error("qsa_score", "the ratio must be at least 1");
  if (args.q.extent(1) < 1 || d < 1) argument_error("qsa_score", "q " + describe(args.q) + " has no heads or no dims");
  if (args.pages.page != nullptr && (args.pages.rows < 1 || args.pages.rows % 64 != 0))
    argument_error("qsa_score", "pages of " + std::to_string(args.pages.rows) + " blocks: a multiple of 64 is needed");
  const bool on_cpu = queue.accelerator() == nullptr;
  if (on_cpu) check_cells(args);
  choose_arm<QsaScoreArgs>(queue, "qsa_score", kArms, args).run(queue, args);
  if (!on_cpu) return;
  if (!args.dead.empty()) qsa_score_dead_rows(args);
  if (fault(Fault::WritePastSet)) write_past_set(args);
}

}  // namespace strata
