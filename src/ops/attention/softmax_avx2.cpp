#include "ops/attention/softmax_kernel.h"

namespace strata {

constinit const SoftmaxKernel kSoftmaxAvx2{attend_split, merge_split, finish_row};

}  // namespace strata
