#include "ops/sparse_attention/cells.h"

namespace strata {

void sparse_attention_oracle(const SparseAttentionArgs& args, double* out, double* lse) {
  cell_attention_oracle(cells_of(args), out, lse);
}

}  // namespace strata
