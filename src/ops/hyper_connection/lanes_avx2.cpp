#include "ops/hyper_connection/lanes_kernel.h"

namespace strata {

constinit const HyperKernel kHyperAvx2{read_row, write_row};

}  // namespace strata
