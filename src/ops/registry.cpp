#include "ops/registry.h"

#include "ops/matmul/parity.h"
#include "ops/qsa_pool/parity.h"
#include "ops/qsa_score/parity.h"
#include "ops/qsa_select/parity.h"

namespace strata {

const std::vector<OperatorEvidence>& operator_evidence() {
  static const std::vector<OperatorEvidence> list{
      matmul_evidence(),
      qsa_pool_evidence(),
      qsa_score_evidence(),
      qsa_select_evidence(),
  };
  return list;
}

const OperatorEvidence* find_operator(std::string_view name) {
  for (const OperatorEvidence& one : operator_evidence())
    if (one.op == name) return &one;
  return nullptr;
}

}  // namespace strata
