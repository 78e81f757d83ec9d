// Internal to the operator: its arms and its evidence.
#pragma once

#include <span>

#include "evidence/arm.h"
#include "evidence/parity.h"
#include "ops/attention/attention.h"

namespace strata {

std::span<const Arm<AttentionArgs>> attention_arms();
std::vector<std::function<BenchShape()>> attention_shapes();  // bench.cpp
OperatorEvidence attention_evidence();

}  // namespace strata
