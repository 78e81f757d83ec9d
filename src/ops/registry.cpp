#include "ops/registry.h"

#include "ops/gated_delta/parity.h"
#include "ops/matmul/parity.h"

namespace strata {

const std::vector<OperatorEvidence>& operator_evidence() {
  static const std::vector<OperatorEvidence> list{
      gated_delta_evidence(),
      gated_delta_anchored_evidence(),
      gated_delta_gates_evidence(),
      matmul_evidence(),
  };
  return list;
}

const OperatorEvidence* find_operator(std::string_view name) {
  for (const OperatorEvidence& one : operator_evidence())
    if (one.op == name) return &one;
  return nullptr;
}

}  // namespace strata
