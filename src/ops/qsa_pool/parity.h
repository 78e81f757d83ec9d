// Internal to the operator: its arms and its evidence.
#pragma once

#include <span>

#include "evidence/arm.h"
#include "evidence/parity.h"
#include "ops/qsa_pool/qsa_pool.h"

namespace strata {

std::span<const Arm<QsaPoolArgs>> qsa_pool_arms();
OperatorEvidence qsa_pool_evidence();

}  // namespace strata
