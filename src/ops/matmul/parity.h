// Internal to the operator: its arms and its evidence.
#pragma once

#include <span>

#include "evidence/arm.h"
#include "evidence/parity.h"
#include "ops/matmul/matmul.h"

namespace strata {

std::span<const Arm<MatmulArgs>> matmul_arms();
std::vector<std::function<BenchShape()>> matmul_shapes();  // bench.cpp, as the next one
std::vector<std::function<BenchShape()>> matmul_device_shapes();
OperatorEvidence matmul_evidence();

}  // namespace strata
