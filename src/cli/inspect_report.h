// What `strata inspect` knows about a file, as JSON; the text form is printed from the same values.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "gguf/gguf.h"
#include "model/sequence.h"

namespace strata::cli {

// Everything from the file is escaped (gguf::printable). `runnable` is false with an `error` when this build cannot run
// the model. tensors: with a list of all tensors. Memory is that of a sequence with such caches.
nlohmann::ordered_json inspect_report(const gguf::File& file, bool tensors, const CacheOptions& caches);

// Capabilities of a chat template (tools, thinking, system role); null: not known.
nlohmann::ordered_json chat_template_capabilities(const std::string& source);

void print_report(const nlohmann::ordered_json& report);

}  // namespace strata::cli
