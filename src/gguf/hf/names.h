// Names of checkpoint tensors: one spelling for the prefixes that releases use, and what is not part of the text model.
#pragma once

#include <string>
#include <string_view>

namespace strata::gguf::hf {

// Without `language_model.` wherever it stands; `model.mtp.` becomes `mtp.`.
std::string canonical_name(std::string_view name);

// Vision and audio towers, their projectors, rotary caches and attention-mask buffers.
bool is_dropped(std::string_view name);

}  // namespace strata::gguf::hf
