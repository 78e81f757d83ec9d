// NVIDIA GPUs, through the driver that is opened at run time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/accelerator.h"

namespace strata {

// Empty with `missing` set when there is no driver or no card.
std::vector<AcceleratorInfo> list_cuda(std::string& missing, std::vector<uint64_t>& free_bytes);
std::shared_ptr<Accelerator> open_cuda(int index, const AcceleratorOptions& options);  // Error{Device}

}  // namespace strata
