// Internal to the operator: its arms and its evidence.
#pragma once

#include <span>

#include "evidence/arm.h"
#include "evidence/parity.h"
#include "ops/embedding/embedding.h"

namespace strata {

std::span<const Arm<EmbeddingArgs>> embedding_arms();
OperatorEvidence embedding_evidence();

}  // namespace strata
