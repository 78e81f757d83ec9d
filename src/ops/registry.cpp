#include "ops/registry.h"

#include "ops/argmax/parity.h"
#include "ops/attention/parity.h"
#include "ops/causal_conv/parity.h"
#include "ops/embedding/parity.h"
#include "ops/experts/parity.h"
#include "ops/gate_act/parity.h"
#include "ops/gated_delta/parity.h"
#include "ops/hyper_connection/parity.h"
#include "ops/matmul/parity.h"
#include "ops/ngram_embedding/parity.h"
#include "ops/norm/parity.h"
#include "ops/qsa_pool/parity.h"
#include "ops/qsa_score/parity.h"
#include "ops/qsa_select/parity.h"
#include "ops/rope/parity.h"
#include "ops/route/parity.h"
#include "ops/sparse_attention/parity.h"
#include "ops/store_rows/parity.h"

namespace strata {

const std::vector<OperatorEvidence>& operator_evidence() {
  static const std::vector<OperatorEvidence> list{
      argmax_evidence(),
      attention_evidence(),
      causal_conv_evidence(),
      embedding_evidence(),
      experts_evidence(),
      gate_act_evidence(),
      gated_delta_evidence(),
      gated_delta_anchored_evidence(),
      gated_delta_gates_evidence(),
      hyper_read_evidence(),
      hyper_write_evidence(),
      matmul_evidence(),
      ngram_embedding_evidence(),
      ngram_gate_evidence(),
      norm_evidence(),
      qsa_pool_evidence(),
      qsa_score_evidence(),
      qsa_select_evidence(),
      residual_add_evidence(),
      rope_evidence(),
      route_evidence(),
      sparse_attention_evidence(),
      store_rows_evidence(),
  };
  return list;
}

const OperatorEvidence* find_operator(std::string_view name) {
  for (const OperatorEvidence& one : operator_evidence())
    if (one.op == name) return &one;
  return nullptr;
}

}  // namespace strata
