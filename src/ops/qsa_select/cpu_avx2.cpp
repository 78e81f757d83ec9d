#include "ops/qsa_select/kernel.h"

namespace strata {

constinit const QsaSelectKernels kQsaSelectAvx2{compact, order, count, smallest, take};

}  // namespace strata
