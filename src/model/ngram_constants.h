// Constants of the n-gram embedding as published checkpoints derive them, for models that are made here. Files store
// the results; an engine reads them and never derives them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ops/ngram_embedding/ngram_embedding.h"

namespace strata {

// m_j = 2 (splitmix64(seed + 10007 module + golden (j + 1)) mod half) + 1, half = floor(floor((2^63 - 1) / vocabulary)
// / 2): products with token ids stay below 2^63.
std::vector<uint64_t> ngram_multipliers(uint64_t seed, uint64_t vocabulary, uint64_t module, size_t count);

// Head sizes are consecutive primes from `smallest` on, numbered through all modules; offsets their running sum.
NgramParams ngram_params(int orders, int heads, int32_t eos, uint64_t seed, uint64_t vocabulary, uint64_t module,
                         uint64_t smallest);

// Rows of the table: all heads, padded to a multiple of 128.
uint64_t ngram_table_rows(const NgramParams& params);

}  // namespace strata
