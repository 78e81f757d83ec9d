#include "ops/attention/softmax_kernel.h"

namespace strata {

constinit const SoftmaxKernel kSoftmaxAvx512{attend_split, merge_split, finish_row};

}  // namespace strata
