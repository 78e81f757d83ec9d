// Random weights of any dtype for parity cases.
#pragma once

#include "base/random.h"
#include "base/tensor.h"

namespace strata {

// Fills rows of any dtype: encoded from uniform values in [-1, 1] where there is an encoder, else random blocks that
// decode to finite values of ordinary size.
void fill_weights(const Tensor& weight, Random& random);

}  // namespace strata
