// Internal to qsa_score: what its arms for accelerators share on the host.
#pragma once

#include "device/device.h"
#include "ops/qsa_score/device_kernel.h"
#include "ops/qsa_score/qsa_score.h"

namespace strata {

bool qsa_score_in_pieces(const QsaScoreArgs& args);  // keys are whole, aligned pieces of 16 bytes
QsaScoreKernel qsa_score_kernel(const QsaScoreArgs& args);
void qsa_score_spare_rows(Queue& queue, const QsaScoreArgs& args, const QsaScoreKernel& kernel);

}  // namespace strata
