// Internal to the operator: its arms and its evidence.
#pragma once

#include <span>

#include "evidence/arm.h"
#include "evidence/parity.h"
#include "ops/rope/rope.h"

namespace strata {

std::span<const Arm<RopeArgs>> rope_arms();
OperatorEvidence rope_evidence();

}  // namespace strata
