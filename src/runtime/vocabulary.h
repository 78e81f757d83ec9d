// The tokenizer that a model file brings.
#pragma once

#include <memory>

#include "gguf/gguf.h"
#include "text/tokenizer.h"

namespace strata {

// tokenizer.ggml.* of the file. Error{Model} when the file has no tokenizer, or one that is not supported.
text::Vocabulary read_vocabulary(const gguf::File& file);

// The same, ready for use. Every error names the file.
text::Tokenizer read_tokenizer(const gguf::File& file);

bool has_tokenizer(const gguf::File& file);

}  // namespace strata
