// Which type each tensor of the file gets (gguf.md, section 5).
#pragma once

#include <cstdint>
#include <string_view>

#include "base/dtype.h"

namespace strata::gguf::hf {

// Always F32: 1-D tensors, norms, names without ".weight", routers, the delta net's convolution.
bool stays_f32(std::string_view name, size_t dims);

// The asked type where it may be used; F16 where rows of `row` elements are not whole blocks of it.
DType storage_type(std::string_view name, size_t dims, uint64_t row, DType asked);

uint32_t file_type(DType asked);  // general.file_type

}  // namespace strata::gguf::hf
