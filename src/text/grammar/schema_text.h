// What is checked of a JSON schema's text before it is parsed.
#pragma once

#include <string_view>

#include "text/grammar.h"

namespace strata::text::grammar {

// Error{Argument} for a text that is too long, nests too deep or has too many members.
void check_schema_text(std::string_view text, const GrammarLimits& limits);

}  // namespace strata::text::grammar
