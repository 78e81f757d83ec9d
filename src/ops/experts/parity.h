// Internal to the operator: its arms and its evidence.
#pragma once

#include <span>

#include "evidence/arm.h"
#include "evidence/parity.h"
#include "ops/experts/experts.h"

namespace strata {

std::span<const Arm<ExpertsArgs>> experts_arms();
OperatorEvidence experts_evidence();

}  // namespace strata
