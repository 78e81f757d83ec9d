// Internal to the operator: its arms and its evidence.
#pragma once

#include <span>

#include "evidence/arm.h"
#include "evidence/parity.h"
#include "ops/store_rows/store_rows.h"

namespace strata {

std::span<const Arm<StoreRowsArgs>> store_rows_arms();
OperatorEvidence store_rows_evidence();

}  // namespace strata
