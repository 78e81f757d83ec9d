// Internal to the operator: its arms and its evidence.
#pragma once

#include <span>

#include "evidence/arm.h"
#include "evidence/parity.h"
#include "ops/qsa_score/qsa_score.h"

namespace strata {

std::span<const Arm<QsaScoreArgs>> qsa_score_arms();
OperatorEvidence qsa_score_evidence();
std::vector<std::function<BenchShape()>> qsa_score_shapes();  // bench.cpp

// Do the `best` blocks by the given scores equal those by the expected ones? Empty: yes, or errors inside the bounds
// may change the choice (`force` is then false); else the first difference.
std::string qsa_score_selection(const double* expected, const double* bound, const float* scores, int64_t blocks,
                                int64_t best, bool& force);

}  // namespace strata
