// AMD GPUs, through the HIP library that is opened at run time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/accelerator.h"
#include "device/hip_driver.h"

namespace strata {

// Empty with `missing` set when there is no library or no card.
std::vector<AcceleratorInfo> list_hip(std::string& missing, std::vector<uint64_t>& free_bytes,
                                      const std::shared_ptr<const hip::Driver>& driver = hip::driver());
// index -1: the first card that is not part of the processor, which is often the first of all. Error{Device}.
std::shared_ptr<Accelerator> open_hip(int index, const AcceleratorOptions& options,
                                      const std::shared_ptr<const hip::Driver>& driver = hip::driver());

}  // namespace strata
