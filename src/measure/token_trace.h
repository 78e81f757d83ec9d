// Tokens to measure with: the same for every arm, engine and run, so that expert routing and selection are the same
// too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace strata {

// `count` ids below `vocabulary`, which is at least 1. A longer trace of the same seed begins with a shorter one.
std::vector<int32_t> token_trace(int64_t vocabulary, int64_t count, uint64_t seed = 1);

}  // namespace strata
