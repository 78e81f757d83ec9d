// What is checked of a JSON schema's text before it is parsed, and references in it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/grammar.h"

namespace strata::text::grammar {

// Error{Argument} for a text that is too long, nests too deep or has too many members.
void check_schema_text(std::string_view text, const GrammarLimits& limits);

// The keys of "#/a/b~1c%20d": "a", "b/c d". Error{Argument} for a reference to another document.
std::vector<std::string> keys_of_ref(const std::string& ref, const std::string& where);

}  // namespace strata::text::grammar
