// Sequences as after a long prompt, without the prompt: to measure what a token costs far into a context.
#pragma once

#include <cstdint>
#include <functional>

#include "model/sequence.h"

namespace strata {

// Fills every cache of a fresh sequence with `positions` rows of seeded random values of the size that real ones have;
// the MTP block's with one cell less, as a run leaves it. The same seed gives the same rows. No operator runs.
// `progress` is told the positions so far; false ends it there. Error{Argument} for a sequence that holds something or
// whose capacity is smaller, Error{Memory} when the pool is full.
void fill_synthetic(Queue& queue, Sequence& sequence, const ModelSpec& spec, int64_t positions, uint64_t seed = 1,
                    const std::function<bool(int64_t done)>& progress = {});

}  // namespace strata
