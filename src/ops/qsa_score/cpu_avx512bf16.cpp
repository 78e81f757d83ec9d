#include "ops/qsa_score/kernel.h"

namespace strata {

constinit const QsaScoreKernels kQsaScoreAvx512Bf16 = Kernels<QsaLayout::Pairs>::table();

}  // namespace strata
