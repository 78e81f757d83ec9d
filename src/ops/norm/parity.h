// Internal to the operator: its arms and its evidence.
#pragma once

#include <span>

#include "evidence/arm.h"
#include "evidence/parity.h"
#include "ops/norm/norm.h"

namespace strata {

std::span<const Arm<NormArgs>> norm_arms();
std::vector<std::function<BenchShape()>> norm_shapes();  // bench.cpp
OperatorEvidence norm_evidence();

}  // namespace strata
