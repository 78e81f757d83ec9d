// Internal to the operator: its arms and its evidence.
#pragma once

#include <span>

#include "evidence/arm.h"
#include "evidence/parity.h"
#include "ops/sparse_attention/sparse_attention.h"

namespace strata {

std::span<const Arm<SparseAttentionArgs>> sparse_attention_arms();
std::vector<std::function<BenchShape()>> sparse_attention_shapes();  // bench.cpp
OperatorEvidence sparse_attention_evidence();

}  // namespace strata
