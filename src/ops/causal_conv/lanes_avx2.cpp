#include "ops/causal_conv/lanes_kernel.h"

namespace strata {

constinit const CausalConvKernel kCausalConvAvx2{conv_row, conv_four};

}  // namespace strata
