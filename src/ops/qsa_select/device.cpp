#include "device/device.h"

#include <algorithm>
#include <string>

#include "ops/qsa_select/device_kernel.h"
#include "ops/qsa_select/qsa_select.h"

namespace strata {

extern const KernelImage kernel_image_qsa_select;

namespace {

QsaSelectKernel kernel_of(const QsaSelectArgs& args, int64_t threads) {
  return {.scores = args.scores.f32(),
          .score_row = args.scores.stride(0) / 4,
          .n_kv = args.n_kv.as<int32_t>(),
          .ids = args.ids.as<int32_t>(),
          .id_row = args.ids.stride(0) / 4,
          .counts = args.counts.as<int32_t>(),
          .thresholds = args.thresholds.empty() ? nullptr : args.thresholds.as<uint32_t>(),
          .limit = static_cast<int32_t>(args.scores.extent(1)),
          .capacity = static_cast<int32_t>(args.ids.extent(1)),
          .ratio = args.ratio,
          .budget = args.budget / args.ratio,
          .fixed_width = args.semantics == QsaSemantics::FixedWidth ? 1 : 0,
          .copies = static_cast<int32_t>(std::max<int64_t>(threads / 256, 1))};
}

int64_t fixed_bytes(const QsaSelectKernel& kernel) { return (int64_t{kernel.copies} * kSelectBins + 68) * 4; }

constexpr int64_t kSieveThreads = 1024, kSieveBudget = 768, kSieveWidth = 524288;

// As many as the row needs, and a third more than there are blocks to choose.
int64_t sieve_threads(int64_t width, int64_t budget) {
  if (width <= 1024 && budget <= 96) return 128;
  return width <= 4096 && budget <= 384 ? 512 : kSieveThreads;
}

}  // namespace

void qsa_select_radix(Queue& queue, const QsaSelectArgs& args) {
  const int64_t width = args.scores.extent(1);
  const int64_t threads = width <= 1024 ? 128 : (width <= 8192 ? 512 : 1024);
  const QsaSelectKernel kernel = kernel_of(args, threads);
  const int64_t fixed = fixed_bytes(kernel), all = fixed + width * 4;
  const bool kept = all <= queue.accelerator()->info().shared_bytes;
  queue.launch("qsa_select", kernel_image_qsa_select, kept ? "qsa_select_kept" : "qsa_select_read",
               {{args.scores.extent(0)}, {threads}, static_cast<uint32_t>(kept ? all : fixed)}, kernel);
}

std::string qsa_select_sieve_refusal(const QsaSelectArgs& args) {
  if (args.budget / args.ratio > kSieveBudget)
    return std::to_string(args.budget / args.ratio) + " blocks are wanted, this arm bounds " +
           std::to_string(kSieveBudget) + " by the largest scores of its " + std::to_string(kSieveThreads) + " threads";
  if (args.scores.extent(1) > kSieveWidth)
    return "rows of " + std::to_string(args.scores.extent(1)) + " blocks, this arm marks " +
           std::to_string(kSieveWidth) + " in shared memory";
  return {};
}

void qsa_select_sieve(Queue& queue, const QsaSelectArgs& args) {
  const int64_t width = args.scores.extent(1), words = (width + 31) / 32;
  const int64_t threads = sieve_threads(width, args.budget / args.ratio);
  const int64_t limit = queue.accelerator()->info().shared_bytes, marks = 2 * 4 * (int64_t{kSelectKept} + words);
  QsaSelectKernel kernel = kernel_of(args, threads);
  kernel.copies = 1;  // it counts few keys
  const int64_t bytes = fixed_bytes(kernel) + marks;
  if (bytes > limit) return qsa_select_radix(queue, args);  // the same blocks
  queue.launch("qsa_select", kernel_image_qsa_select,
               width <= 8 * kSieveThreads ? "qsa_select_sieve_8" : "qsa_select_sieve_32",
               {{args.scores.extent(0)}, {threads}, static_cast<uint32_t>(bytes)}, kernel);
}

}  // namespace strata
