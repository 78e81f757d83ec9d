// The rows of x that an oracle multiplies. Internal to oracle and bound.
#pragma once

#include <vector>

#include "ops/matmul/matmul.h"

namespace strata {

// [rows, in] in float64: x, or x rounded.
std::vector<double> activations_of(const MatmulArgs& args);  // bound.cpp

}  // namespace strata
