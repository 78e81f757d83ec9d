#include "device/device.h"

#include "ops/route/device_kernel.h"
#include "ops/route/route.h"

namespace strata {

extern const KernelImage kernel_image_route;

void route_device(Queue& queue, const RouteArgs& args) {
  constexpr int64_t kFloat = sizeof(float);
  const RouteKernel kernel{args.logits.f32(),
                           args.ids.as<int32_t>(),
                           args.weights.f32(),
                           args.logits.extent(1),
                           args.ids.extent(1),
                           args.logits.stride(0) / kFloat,
                           args.ids.stride(0) / kFloat,
                           args.weights.stride(0) / kFloat,
                           args.normalise,
                           args.scale};
  queue.launch("route", kernel_image_route, "route_rows", {{args.logits.extent(0)}, {32}}, kernel);
}

}  // namespace strata
