#include "ops/gate_act/lanes_kernel.h"

namespace strata {

constinit const GateActKernel kGateActAvx2{gate_row};

}  // namespace strata
