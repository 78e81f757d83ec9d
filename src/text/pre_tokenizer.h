// The pre-tokenizers one piece at a time, so that encoding needs no list of all pieces.
#pragma once

#include <cstddef>
#include <string_view>

#include "text/tokenizer.h"

namespace strata::text {

// End of the piece that begins at `pos`, which is inside `text`. Time over a whole text is linear.
size_t piece_end(PreTokenizer kind, std::string_view text, size_t pos);

}  // namespace strata::text
