#include "ops/registry.h"

#include "ops/attention/parity.h"
#include "ops/matmul/parity.h"
#include "ops/sparse_attention/parity.h"

namespace strata {

const std::vector<OperatorEvidence>& operator_evidence() {
  static const std::vector<OperatorEvidence> list{
      attention_evidence(),
      matmul_evidence(),
      sparse_attention_evidence(),
  };
  return list;
}

const OperatorEvidence* find_operator(std::string_view name) {
  for (const OperatorEvidence& one : operator_evidence())
    if (one.op == name) return &one;
  return nullptr;
}

}  // namespace strata
