#include "ops/weight_dot/kernel.h"

namespace strata {

constinit const WeightDotKernel kWeightDotAvx512{kMostFew, few_of, decode_of, panel, activate};

}  // namespace strata
