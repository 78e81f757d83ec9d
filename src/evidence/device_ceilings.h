// What an accelerator can do at most, measured as ceilings.h does for the CPU.
#pragma once

#include "device/device.h"
#include "evidence/ceilings.h"

namespace strata {

// Takes about a second and 2 GiB of the device. Matrix peaks are those of the instructions that one wave issues.
Ceilings measure_device_ceilings(Queue& queue);

}  // namespace strata
