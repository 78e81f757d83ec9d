// GBNF text to rules (docs/grammar.md).
#pragma once

#include <string_view>

#include "text/grammar/expr.h"

namespace strata::text::grammar {

Rules parse_gbnf(std::string_view text, const GrammarLimits& limits);  // Error{Argument} with line and column

}  // namespace strata::text::grammar
