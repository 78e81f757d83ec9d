// Weights in the memory of an accelerator.
#pragma once

#include "device/memory_space.h"
#include "model/weights.h"

namespace strata {

// Copies what the tensors of `weights` show into one piece of memory of `space`, and makes them show that. What several
// tensors share is copied once. Error{Memory} with need and free, and nothing has changed.
SpaceMemory place_weights(Weights& weights, const MemorySpace& space);

}  // namespace strata
