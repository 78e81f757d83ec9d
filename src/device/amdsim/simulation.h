// Devices "sim:gfx1100", "sim:gfx1151", "sim:gfx1201", "sim:gfx942": machine code for AMD GPUs, interpreted on the CPU
// and checked while it runs.
#pragma once

#include <memory>
#include <string>

#include "device/accelerator.h"

namespace strata {

// `target`: "gfx1100". Error{Usage} for a target that is not interpreted, Error{Device} without LLVM's decoder.
std::shared_ptr<Accelerator> open_simulation(const std::string& target);

}  // namespace strata
