// Internal to the operators: their arms and their evidence.
#pragma once

#include <span>

#include "evidence/arm.h"
#include "evidence/parity.h"
#include "ops/gated_delta/gated_delta.h"

namespace strata {

std::span<const Arm<GatedDeltaArgs>> gated_delta_arms();
std::span<const Arm<GatedDeltaAnchoredArgs>> gated_delta_anchored_arms();
std::span<const Arm<GatedDeltaGatesArgs>> gated_delta_gates_arms();

std::vector<std::function<BenchShape()>> gated_delta_shapes();  // bench.cpp
std::vector<std::function<BenchShape()>> gated_delta_anchored_shapes();
std::vector<std::function<BenchShape()>> gated_delta_device_shapes();  // for accelerators
std::vector<std::function<BenchShape()>> gated_delta_anchored_device_shapes();

OperatorEvidence gated_delta_evidence();
OperatorEvidence gated_delta_anchored_evidence();
OperatorEvidence gated_delta_gates_evidence();

}  // namespace strata
