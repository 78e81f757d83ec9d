// Internal to the operator: its arguments as those of the code it shares with attention.
#pragma once

#include "ops/attention/softmax.h"
#include "ops/sparse_attention/sparse_attention.h"

namespace strata {

inline CellAttention cells_of(const SparseAttentionArgs& args) {
  return {args.q, args.k, args.v, args.counts, args.ids, args.scale, args.out, args.lse, args.k_pages, args.v_pages};
}

}  // namespace strata
