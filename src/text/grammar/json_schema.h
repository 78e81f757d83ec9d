// JSON schema to rules (docs/grammar.md).
#pragma once

#include <string_view>

#include "text/grammar/expr.h"

namespace strata::text::grammar {

// Error{Argument} naming the keyword that is not supported, and where it stands.
Rules compile_json_schema(std::string_view text, const GrammarLimits& limits);

}  // namespace strata::text::grammar
