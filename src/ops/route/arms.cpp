#include "evidence/arm.h"
#include "ops/route/parity.h"
#include "ops/route/route.h"

namespace strata {

void route_portable(Queue& queue, const RouteArgs& args);  // cpu.cpp
void route_device(Queue& queue, const RouteArgs& args);    // device.cpp
extern const KernelImage kernel_image_route;

namespace {
constexpr Arm<RouteArgs> kArms[] = {
    {"wave", always_runs<RouteArgs>, route_device, true, false, CpuIsa::Portable, &kernel_image_route},
    {"portable", always_runs<RouteArgs>, route_portable},
};
}

void route(Queue& queue, const RouteArgs& args) {
  check_tensor("route", "logits", args.logits, DType::F32, {-1, -1});
  const int64_t rows = args.logits.extent(0), experts = args.logits.extent(1);
  check_tensor("route", "ids", args.ids, DType::I32, {rows, -1});
  const int64_t k = args.ids.extent(1);
  check_tensor("route", "weights", args.weights, DType::F32, {rows, k});
  if (k < 1 || k > experts)
    argument_error("route", "cannot choose " + std::to_string(k) + " of " + std::to_string(experts) + " experts");
  choose_arm<RouteArgs>(queue, "route", kArms, args).run(queue, args);
}

std::span<const Arm<RouteArgs>> route_arms() { return kArms; }

}  // namespace strata
