// Block scores of the indexer: sum over index heads of relu(q · K_b). Contract: README.md in this folder.
#pragma once

#include "base/tensor.h"
#include "device/device.h"

namespace strata {

struct QsaScoreArgs {
  Tensor q;         // f32 [rows, index_heads, d], normed and rotated; rows and heads may be strided
  Tensor pooled;    // f32 [blocks, d]
  Tensor n_blocks;  // i32 [rows]: complete blocks visible to each row
  Tensor scores;    // f32 [rows, >= max n_blocks]: entries b < n_blocks[t] are written, no others
};

void qsa_score(Queue& queue, const QsaScoreArgs& args);

void qsa_score_oracle(const QsaScoreArgs& args, double* out);  // float64, laid out as [rows, extent 1 of scores]

}  // namespace strata
