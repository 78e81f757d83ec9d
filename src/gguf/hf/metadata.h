// Metadata of the file from the config (gguf.md, section 2). What other readers will not understand is warned about.
#pragma once

#include <string>
#include <vector>

#include "base/dtype.h"
#include "gguf/gguf.h"
#include "gguf/hf/map.h"

namespace strata::gguf::hf {

std::vector<KeyValue> model_metadata(const Config& config, const Plan& plan, const std::string& name, DType type,
                                     const Warn& warn);

}  // namespace strata::gguf::hf
