// What benchmarks time of matmul: one product of a format, by itself and in the suite of all formats.
#pragma once

#include "evidence/bench.h"
#include "ops/weight_dot/rounded.h"

namespace strata {

// [rows, in] x [out]. Weights are read from memory and results written to it, as sets of them take turns; rows of x are
// the same in all sets: they come from the operator before.
BenchShape matmul_shape(DType type, int64_t rows, int64_t in, int64_t out, Activations activations = Activations::F32);

}  // namespace strata
