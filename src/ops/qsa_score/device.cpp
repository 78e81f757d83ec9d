#include "device/device.h"

#include <algorithm>
#include <string>

#include "ops/qsa_score/device_host.h"
#include "ops/qsa_score/qsa_score.h"

namespace strata {

extern const KernelImage kernel_image_qsa_score_fma, kernel_image_qsa_score_mma;

namespace {

constexpr const char* kOp = "qsa_score";
constexpr int64_t kMostOperands = 4096;  // heads · d of `mma`: three groups of eight rows in shared memory

int64_t quotient_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit; }

// Of the ways to share the groups among blocks the one that ends first, `places` blocks at a time: a block begins with
// its keys, which take as long as three groups.
int64_t groups_of_block(int64_t tiles, int64_t groups, int64_t places) {
  constexpr int64_t kBegin = 3, kMostParts = 65535;
  int64_t best = 0, least = 0;
  for (int64_t each = quotient_up(groups, kMostParts); each <= groups; ++each) {
    const int64_t time = quotient_up(std::max<int64_t>(tiles, 1) * quotient_up(groups, each), places) * (each + kBegin);
    if (best == 0 || time <= least) best = each, least = time;
  }
  return best;
}

}  // namespace

bool qsa_score_in_pieces(const QsaScoreArgs& args) {
  const auto address = reinterpret_cast<uintptr_t>(args.pages.page == nullptr ? args.pooled.data : nullptr);
  return address % 16 == 0 && args.pooled.stride(0) % 16 == 0;  // pages are aligned
}

QsaScoreKernel qsa_score_kernel(const QsaScoreArgs& args) {
  const DType form = args.pooled.dtype;
  return {.q = args.q.f32(),
          .q_row = args.q.stride(0) / 4,
          .q_head = args.q.stride(1) / 4,
          .keys = args.pooled.as<char>(),
          .key_bytes = args.pooled.stride(0),
          .pages = args.pages.page,
          .page_rows = args.pages.rows,
          .dead = args.dead.as<char>(),
          .n_kv = args.n_kv.as<int32_t>(),
          .scores = args.scores.f32(),
          .score_row = args.scores.stride(0) / 4,
          .rows = args.q.extent(0),
          .heads = args.q.extent(1),
          .d = args.q.extent(2),
          .limit = std::min(args.pooled.extent(0), args.scores.extent(1) - (args.dead.empty() ? 0 : 1)),
          .ratio = args.ratio,
          .form = form == DType::F32 ? 0 : (form == DType::BF16 ? 1 : 2),
          .aligned = qsa_score_in_pieces(args) ? 1 : 0,
          .operands = nullptr,
          .groups = (args.q.extent(0) + kScoreRows - 1) / kScoreRows,
          .groups_each = 1};
}

void qsa_score_spare_rows(Queue& queue, const QsaScoreArgs& args, const QsaScoreKernel& kernel) {
  if (!args.dead.empty())
    queue.launch(kOp, kernel_image_qsa_score_fma, "qsa_score_spare", {{kernel.rows}, {32}, 0}, kernel);
}

void qsa_score_fma(Queue& queue, const QsaScoreArgs& args) {
  constexpr int64_t kTile = 256, kRows = 4;
  const QsaScoreKernel kernel = qsa_score_kernel(args);
  queue.launch(
      kOp, kernel_image_qsa_score_fma, "qsa_score_fma",
      {{quotient_up(kernel.limit, kTile) * quotient_up(kernel.rows, kRows)}, {128}, 32 * 257 * 4 + 32 * 16 * 4},
      kernel);
  qsa_score_spare_rows(queue, args, kernel);
}

std::string qsa_score_mma_refusal(const QsaScoreArgs& args) {
  const int64_t d = args.q.extent(2);
  if (args.pooled.dtype == DType::F32) return "the keys are f32, this arm multiplies 16-bit operands";
  if (d != 64 && d != 128 && d != 256) return "keys of " + std::to_string(d) + " dims, this arm has 64, 128 and 256";
  if (args.q.extent(1) * d > kMostOperands)
    return std::to_string(args.q.extent(1)) + " heads of " + std::to_string(d) + " do not fit shared memory";
  return {};
}

void qsa_score_mma(Queue& queue, const QsaScoreArgs& args) {
  QsaScoreKernel kernel = qsa_score_kernel(args);
  if (kernel.rows == 0) return;
  const int64_t bytes = kernel.heads * kScoreRows * kernel.d * 2;
  if (kernel.groups > 1) {
    kernel.operands = static_cast<char*>(queue.scratch(static_cast<uint64_t>(kernel.groups * bytes)));
    for (int64_t first = 0; first < kernel.groups; first += 65535) {
      QsaScoreKernel part = kernel;
      part.q += first * kScoreRows * kernel.q_row;
      part.rows -= first * kScoreRows;
      part.operands += first * bytes;
      queue.launch(kOp, kernel_image_qsa_score_mma, "qsa_score_operands",
                   {{quotient_up(bytes / 16, 128), std::min<int64_t>(kernel.groups - first, 65535)}, {128}, 0}, part);
    }
  }
  const int64_t tiles = quotient_up(kernel.limit, kScoreWaves * (kernel.d == 256 ? 16 : 32));
  kernel.groups_each = groups_of_block(tiles, kernel.groups, 2 * queue.accelerator()->info().multiprocessors);
  const std::string name = std::string("qsa_score_") + (kernel.form == 1 ? "bf16_" : "f16_") + std::to_string(kernel.d);
  const auto shared = static_cast<uint32_t>((kernel.groups > 1 ? kScoreStages : 1) * bytes +
                                            (kScoreStages * kScoreRows + kScoreWaves) * 4);
  queue.launch(kOp, kernel_image_qsa_score_mma, name.c_str(),
               {{tiles, quotient_up(kernel.groups, kernel.groups_each)}, {kScoreWaves * 32}, shared, kernel.groups > 1},
               kernel);
  qsa_score_spare_rows(queue, args, kernel);
}

}  // namespace strata
