// Block scores of the indexer: sum over index heads of relu(q · K_b). Contract: README.md in this folder.
#pragma once

#include "base/tensor.h"
#include "device/device.h"

namespace strata {

struct QsaScoreArgs {
  Tensor q;       // f32 [rows, index_heads, d], normed and rotated; rows and heads may be strided
  Tensor pooled;  // f32, bf16 or f16 [blocks, d]; q is rounded to this type before the products
  Tensor dead;    // [d] of the type of pooled, or empty: the key of the spare row n_kv / ratio
  Tensor n_kv;    // i32 [rows]: visible cells
  int ratio = 4;  // cells of a block
  Tensor scores;  // f32 [rows, width]: entries b < n_kv[t] / ratio are written, the next one with a dead key, no others
  RowPages pages{};  // of the blocks, when pooled is not one array; pages of a multiple of 64 blocks
};

void qsa_score(Queue& queue, const QsaScoreArgs& args);

// float64, laid out as `scores`; entries that are not written stay as they are.
void qsa_score_oracle(const QsaScoreArgs& args, double* out);
void qsa_score_bound(const QsaScoreArgs& args, double* out);

}  // namespace strata
