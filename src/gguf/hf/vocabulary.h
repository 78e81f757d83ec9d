// The byte-level BPE vocabulary of a checkpoint as tokenizer.* keys.
#pragma once

#include <string>
#include <vector>

#include "gguf/gguf.h"
#include "gguf/hf/config.h"

namespace strata::gguf::hf {

// Reads tokenizer.json, tokenizer_config.json and chat_template.jinja. Empty, with a warning, when there is no
// vocabulary or it is not byte-level BPE with a known pre-tokenizer: the file then works with token ids only.
// Error{Model} for a vocabulary that contradicts itself or the config.
std::vector<KeyValue> read_vocabulary(const std::string& directory, const Config& config, const Warn& warn);

}  // namespace strata::gguf::hf
