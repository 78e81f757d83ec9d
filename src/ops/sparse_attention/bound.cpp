#include "ops/sparse_attention/cells.h"

namespace strata {

void sparse_attention_bound(const SparseAttentionArgs& args, double* out, double* lse) {
  cell_attention_bound(cells_of(args), out, lse);
}

}  // namespace strata
