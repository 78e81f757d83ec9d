// Internal to the operator: its arms and its evidence.
#pragma once

#include <span>

#include "evidence/arm.h"
#include "evidence/parity.h"
#include "ops/matmul/matmul.h"

namespace strata {

std::span<const Arm<MatmulArgs>> matmul_arms();
std::vector<std::function<BenchShape()>> matmul_shapes();  // bench.cpp
OperatorEvidence matmul_evidence();

}  // namespace strata
