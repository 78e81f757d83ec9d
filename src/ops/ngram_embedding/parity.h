// Internal to the operator: its arms and its evidence.
#pragma once

#include <span>

#include "evidence/arm.h"
#include "evidence/parity.h"
#include "ops/ngram_embedding/ngram_embedding.h"

namespace strata {

std::span<const Arm<NgramEmbeddingArgs>> ngram_embedding_arms();
OperatorEvidence ngram_embedding_evidence();
std::span<const Arm<NgramGateArgs>> ngram_gate_arms();
OperatorEvidence ngram_gate_evidence();

}  // namespace strata
