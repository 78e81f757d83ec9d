#include "device/device.h"

#include <cmath>

#include "ops/gated_delta/cpu.h"
#include "ops/gated_delta/device_kernel.h"
#include "ops/gated_delta/gated_delta.h"

namespace strata {

extern const KernelImage kernel_image_gated_delta_serial;

namespace {
constexpr int64_t kFloat = sizeof(float);
}

std::string gated_delta_device_refusal(const GatedDeltaArgs& args) {
  return args.q.extent(2) <= 256 ? std::string() : "keys of " + std::to_string(args.q.extent(2)) + " values; up to 256";
}

void gated_delta_device(Queue& queue, const GatedDeltaArgs& args) {
  constexpr int64_t kThreads = 128, kColumns = kThreads / 8;
  const int64_t rows = args.q.extent(0), key_heads = args.q.extent(1), dk = args.q.extent(2);
  const int64_t value_heads = args.v.extent(1), dv = args.v.extent(2), slices = (dv + kColumns - 1) / kColumns;
  if (rows == 0) return;
  const int width = dk <= 64 ? 0 : dk <= 128 ? 1 : 2;
  const int64_t elements = rows * key_heads * kKeyWidths[width];
  auto* normalised = static_cast<float*>(queue.scratch(static_cast<uint64_t>(2 * elements * kFloat)));
  const DeltaNormaliseKernel normalise{args.q.f32(),
                                       args.k.f32(),
                                       normalised,
                                       normalised + elements,
                                       key_heads,
                                       dk,
                                       kKeyWidths[width],
                                       args.q.stride(0) / kFloat,
                                       args.q.stride(1) / kFloat,
                                       args.k.stride(0) / kFloat,
                                       args.k.stride(1) / kFloat,
                                       1.0f / std::sqrt(static_cast<float>(dk))};
  queue.launch("gated_delta", kernel_image_gated_delta_serial, "gated_delta_normalise", {{rows * key_heads}, {32}},
               normalise);
  const DeltaSerialKernel serial{normalised,
                                 normalised + elements,
                                 args.v.f32(),
                                 args.g.f32(),
                                 args.beta.f32(),
                                 args.state.f32(),
                                 args.out.f32(),
                                 rows,
                                 stored_rows(args),
                                 key_heads,
                                 value_heads,
                                 dk,
                                 dv,
                                 args.v.stride(0) / kFloat,
                                 args.v.stride(1) / kFloat,
                                 args.g.stride(0) / kFloat,
                                 args.beta.stride(0) / kFloat,
                                 args.state.stride(0) / kFloat,
                                 args.state.stride(1) / kFloat,
                                 args.out.stride(0) / kFloat,
                                 args.out.stride(1) / kFloat,
                                 slices,
                                 args.mapping == HeadMapping::Tiled};
  constexpr const char* kKernels[] = {"gated_delta_serial64", "gated_delta_serial128", "gated_delta_serial256"};
  queue.launch("gated_delta", kernel_image_gated_delta_serial, kKernels[width], {{value_heads * slices}, {kThreads}},
               serial);
}

void gated_delta_gates_device(Queue& queue, const GatedDeltaGatesArgs& args) {
  constexpr int64_t kThreads = 128;
  const int64_t rows = args.alpha.extent(0), heads = args.alpha.extent(1);
  const DeltaGatesKernel kernel{args.alpha.f32(),
                                args.b.f32(),
                                args.dt_bias.f32(),
                                args.a.f32(),
                                args.g.f32(),
                                args.beta.f32(),
                                rows,
                                heads,
                                args.alpha.stride(0) / kFloat,
                                args.alpha.stride(1) / kFloat,
                                args.b.stride(0) / kFloat,
                                args.b.stride(1) / kFloat,
                                args.g.stride(0) / kFloat,
                                args.beta.stride(0) / kFloat};
  queue.launch("gated_delta_gates", kernel_image_gated_delta_serial, "gated_delta_gates_rows",
               {{(rows * heads + kThreads - 1) / kThreads}, {kThreads}}, kernel);
}

}  // namespace strata
