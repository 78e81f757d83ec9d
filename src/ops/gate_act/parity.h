// Internal to the operator: its arms and its evidence.
#pragma once

#include <span>

#include "evidence/arm.h"
#include "evidence/parity.h"
#include "ops/gate_act/gate_act.h"

namespace strata {

std::span<const Arm<GateActArgs>> gate_act_arms();
OperatorEvidence gate_act_evidence();
std::span<const Arm<ResidualAddArgs>> residual_add_arms();
OperatorEvidence residual_add_evidence();

}  // namespace strata
