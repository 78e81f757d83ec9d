#include "device/device.h"

#include "ops/device_aligned.h"
#include "ops/rope/device_kernel.h"
#include "ops/rope/rope.h"

namespace strata {

extern const KernelImage kernel_image_rope;

std::string rope_device_refusal(const RopeArgs& args) {
  constexpr int64_t kLimit = 1 << 30;  // pairs of a row are counted in 32 bits
  const int64_t heads = args.x.extent(1), half = args.cos.extent(1);
  if (half == 0 || heads <= kLimit / half) return {};
  return std::to_string(heads) + " heads of " + std::to_string(half) + " pairs; up to " + std::to_string(kLimit) +
         " pairs a row";
}

void rope_device(Queue& queue, const RopeArgs& args) {
  constexpr int64_t kFloat = sizeof(float), kThreads = 128;
  const int64_t rows = args.x.extent(0), heads = args.x.extent(1), half = args.cos.extent(1);
  const bool fours = half % 4 == 0 && on_sixteen(args.x) && on_sixteen(args.cos) && on_sixteen(args.sin);
  const int64_t items = heads * (fours ? half / 4 : half), blocks = (items + kThreads - 1) / kThreads;
  const RopeKernel kernel{args.x.f32(),
                          args.cos.f32(),
                          args.sin.f32(),
                          args.x.stride(0) / kFloat,
                          args.x.stride(1) / kFloat,
                          args.cos.stride(0) / kFloat,
                          args.sin.stride(0) / kFloat,
                          blocks,
                          static_cast<int32_t>(heads),
                          static_cast<int32_t>(half),
                          args.pairs == RopePairs::Adjacent};
  queue.launch("rope", kernel_image_rope, fours ? "rope_fours" : "rope_pairs", {{rows * blocks}, {kThreads}}, kernel);
}

}  // namespace strata
