// The gated delta rule of several sequences at once.
#pragma once

#include <span>

#include "device/side_by_side.h"
#include "ops/gated_delta/gated_delta.h"

namespace strata {

// Each as gated_delta would, with the same bits. No call's state or output is another's; calls that are too small to be
// shared among threads run side by side.
void gated_delta_each(const SideBySide& beside, std::span<const GatedDeltaArgs> calls);

}  // namespace strata
