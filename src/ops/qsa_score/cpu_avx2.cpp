#include "ops/qsa_score/kernel.h"

namespace strata {

constinit const QsaScoreKernels kQsaScoreAvx2 = Kernels<QsaLayout::Dims>::table();

}  // namespace strata
