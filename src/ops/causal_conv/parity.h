// Internal to the operator: its arms and its evidence.
#pragma once

#include <span>

#include "evidence/arm.h"
#include "evidence/parity.h"
#include "ops/causal_conv/causal_conv.h"

namespace strata {

std::span<const Arm<CausalConvArgs>> causal_conv_arms();
OperatorEvidence causal_conv_evidence();

}  // namespace strata
