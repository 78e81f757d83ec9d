#include "ops/gate_act/lanes_kernel.h"

namespace strata {

constinit const GateActKernel kGateActAvx512{gate_row};

}  // namespace strata
