// Internal to the operator: its arms and its evidence.
#pragma once

#include <span>

#include "evidence/arm.h"
#include "evidence/parity.h"
#include "ops/route/route.h"

namespace strata {

std::span<const Arm<RouteArgs>> route_arms();
OperatorEvidence route_evidence();

}  // namespace strata
