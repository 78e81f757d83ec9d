// What tells two model files apart without reading all of them.
#pragma once

#include <string>

#include "gguf/gguf.h"

namespace strata {

// Of the file's size, tensor table and samples of every tensor's weights. Never 0.
uint64_t model_hash(const gguf::File& file);

}  // namespace strata
