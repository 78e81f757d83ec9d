// Internal to the operator: its arms and its evidence.
#pragma once

#include <span>

#include "evidence/arm.h"
#include "evidence/parity.h"
#include "ops/argmax/argmax.h"

namespace strata {

std::span<const Arm<ArgmaxArgs>> argmax_arms();
OperatorEvidence argmax_evidence();

}  // namespace strata
