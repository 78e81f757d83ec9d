// Runs kernels on the CPU from the source that the device compilers get.
#pragma once

#include <memory>

#include "device/accelerator.h"

namespace strata {

AcceleratorInfo emulation_info();
std::shared_ptr<Accelerator> make_emulation(uint64_t bytes = emulation_info().total_bytes);

// One launch; Error{Device} when threads of a block wait for each other in vain.
void run_emulated(const char* what, const EmulatedKernel& kernel, const LaunchShape& shape, const void* arguments,
                  uint64_t seed);

}  // namespace strata
