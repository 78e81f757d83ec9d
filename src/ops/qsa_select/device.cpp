#include "device/device.h"

#include <algorithm>

#include "ops/qsa_select/device_kernel.h"
#include "ops/qsa_select/qsa_select.h"

namespace strata {

extern const KernelImage kernel_image_qsa_select;

void qsa_select_radix(Queue& queue, const QsaSelectArgs& args) {
  const int64_t width = args.scores.extent(1);
  const int64_t threads = width <= 1024 ? 128 : (width <= 8192 ? 512 : 1024);
  const int64_t copies = std::max<int64_t>(threads / 256, 1);
  const QsaSelectKernel kernel{.scores = args.scores.f32(),
                               .score_row = args.scores.stride(0) / 4,
                               .n_kv = args.n_kv.as<int32_t>(),
                               .ids = args.ids.as<int32_t>(),
                               .id_row = args.ids.stride(0) / 4,
                               .counts = args.counts.as<int32_t>(),
                               .thresholds = args.thresholds.empty() ? nullptr : args.thresholds.as<uint32_t>(),
                               .limit = static_cast<int32_t>(width),
                               .capacity = static_cast<int32_t>(args.ids.extent(1)),
                               .ratio = args.ratio,
                               .budget = args.budget / args.ratio,
                               .fixed_width = args.semantics == QsaSemantics::FixedWidth ? 1 : 0,
                               .copies = static_cast<int32_t>(copies)};
  const int64_t fixed = (copies * kSelectBins + 68) * 4, all = fixed + width * 4;
  const bool kept = all <= queue.accelerator()->info().shared_bytes;
  queue.launch("qsa_select", kernel_image_qsa_select, kept ? "qsa_select_kept" : "qsa_select_read",
               {{args.scores.extent(0)}, {threads}, static_cast<uint32_t>(kept ? all : fixed)}, kernel);
}

}  // namespace strata
