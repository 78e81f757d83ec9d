// Exact selection of cells from block scores. Contract: README.md in this folder.
#pragma once

#include "base/tensor.h"
#include "device/device.h"

namespace strata {

enum class QsaSemantics {
  Blocks,      // the best budget/ratio blocks and the whole tail; a block is never cut (the reference model code)
  FixedWidth,  // exactly min(n_kv, budget + ratio - 1) cells, the block at the threshold cut to its lowest cells
};

struct QsaSelectArgs {
  Tensor scores;  // f32 [rows, >= max n_kv / ratio]
  Tensor n_kv;    // i32 [rows]: visible cells
  int ratio = 4;
  int budget = 0;  // cells, a multiple of ratio
  QsaSemantics semantics = QsaSemantics::Blocks;
  Tensor ids;     // i32 [rows, >= min(max n_kv, budget + ratio - 1)], ascending
  Tensor counts;  // i32 [rows]
  // i32 [rows] or empty, in and out: the order key of each row's last selected block, as bits. What it holds before the
  // call, such as the value of the step before, is a guess that may save time and never changes a result. Rows that
  // take every block leave it as it is.
  Tensor thresholds;
};

void qsa_select(Queue& queue, const QsaSelectArgs& args);

// Laid out as args.ids, args.counts and args.thresholds; what is not written stays as it is.
void qsa_select_oracle(const QsaSelectArgs& args, int32_t* ids, int32_t* counts, int32_t* thresholds = nullptr);

// The order of scores: a larger key is a better block. NaN sorts below every number, -0 equals +0.
uint32_t qsa_order_key(float score);

}  // namespace strata
