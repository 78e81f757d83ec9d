// Internal to the operator: its arms and its evidence.
#pragma once

#include <span>

#include "evidence/arm.h"
#include "evidence/parity.h"
#include "ops/qsa_select/qsa_select.h"

namespace strata {

std::span<const Arm<QsaSelectArgs>> qsa_select_arms();
OperatorEvidence qsa_select_evidence();
std::vector<std::function<BenchShape()>> qsa_select_shapes();  // bench.cpp

}  // namespace strata
