// Internal to the operator: its arms and its evidence.
#pragma once

#include <span>

#include "evidence/arm.h"
#include "evidence/parity.h"
#include "ops/hyper_connection/hyper_connection.h"

namespace strata {

std::span<const Arm<HyperReadArgs>> hyper_read_arms();
OperatorEvidence hyper_read_evidence();
std::span<const Arm<HyperWriteArgs>> hyper_write_arms();
OperatorEvidence hyper_write_evidence();

}  // namespace strata
