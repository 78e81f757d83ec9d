// Devices "sim:gfx1100", "sim:gfx1151", "sim:gfx1201", "sim:gfx942": machine code for AMD GPUs, interpreted on the CPU
// and checked while it runs.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "device/accelerator.h"

namespace strata {

// Code objects by the name of an image, to run instead of those of this build: broken ones, in tests.
using ReplacedCode = std::map<std::string, std::vector<unsigned char>>;

// `target`: "gfx1100". Error{Usage} for a target that is not interpreted, Error{Device} without LLVM's decoder.
std::shared_ptr<Accelerator> open_simulation(const std::string& target, ReplacedCode replaced = {});
// Instructions of waves that a simulated device has run; 0 for other devices.
uint64_t simulated_instructions(const Accelerator& accelerator);

// By the name of an image: addresses of barriers at which several waves of a work-group met since the last question.
using MetBarriers = std::map<std::string, std::set<uint32_t>>;
MetBarriers met_barriers(Accelerator& accelerator);

}  // namespace strata
