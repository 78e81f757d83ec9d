// Rows of a table by token id. Contract: README.md in this folder.
#pragma once

#include "base/tensor.h"
#include "device/device.h"

namespace strata {

struct EmbeddingArgs {
  Tensor ids;    // i32 [rows], each in [0, vocabulary)
  Tensor table;  // any dtype [vocabulary, width]
  Tensor y;      // f32 [rows, copies, width]: every copy is the same row (hyper-connections start so)
};

void embedding(Queue& queue, const EmbeddingArgs& args);

void embedding_oracle(const EmbeddingArgs& args, double* out);  // float64 [rows, copies, width]

}  // namespace strata
