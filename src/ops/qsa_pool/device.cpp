#include "device/device.h"

#include <algorithm>

#include "ops/qsa_pool/device_kernel.h"
#include "ops/qsa_pool/qsa_pool.h"

namespace strata {

extern const KernelImage kernel_image_qsa_pool;

std::string qsa_pool_device_refusal(const QsaPoolArgs& args) {
  if (args.raw.extent(1) > 8192) return "index keys of " + std::to_string(args.raw.extent(1)) + " values; up to 8192";
  if (args.rope->rotary_dims() <= 2 * kMaxPoolPairs) return {};
  return std::to_string(args.rope->rotary_dims()) + " rotary dims; up to " + std::to_string(2 * kMaxPoolPairs);
}

void qsa_pool_device(Queue& queue, const QsaPoolArgs& args) {
  constexpr int64_t kFloat = sizeof(float), kThreads = 128;
  const DType type = args.pooled.dtype;
  const int64_t rows = args.raw.extent(0), d = args.raw.extent(1), ratio = args.tail.extent(0);
  const int64_t completed = (args.first + rows) / ratio - args.first / ratio;
  QsaPoolKernel kernel{args.raw.f32(),
                       args.tail.f32(),
                       args.weight.f32(),
                       args.pooled.data,
                       rows,
                       d,
                       ratio,
                       args.first,
                       args.first_block,
                       completed,
                       args.raw.stride(0) / kFloat,
                       args.tail.stride(0) / kFloat,
                       args.pooled.stride(0) / static_cast<int64_t>(info(type).block_bytes),
                       args.eps,
                       args.rope->magnitude,
                       args.rope->rotary_dims() / 2,
                       args.rope->pairs == RopePairs::Adjacent,
                       type == DType::F32    ? 0
                       : type == DType::BF16 ? 1
                                             : 2,
                       {}};
  std::copy(args.rope->frequency.begin(), args.rope->frequency.end(), kernel.frequency);
  queue.launch("qsa_pool", kernel_image_qsa_pool, "qsa_pool_blocks",
               {{std::max<int64_t>(completed, 1)}, {kThreads}, static_cast<uint32_t>((kThreads / 32 + d) * kFloat)},
               kernel);
}

}  // namespace strata
