// Every operator's share in the evidence, in one list.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "evidence/parity.h"

namespace strata {

const std::vector<OperatorEvidence>& operator_evidence();
const OperatorEvidence* find_operator(std::string_view name);  // null when there is none

}  // namespace strata
