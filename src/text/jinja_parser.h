// From the text of a template to its tree.
#pragma once

#include <cstddef>
#include <string_view>

#include "text/jinja_ast.h"
#include "text/template.h"

namespace strata::text::jinja {

Tree parse_template(std::string_view source, const TemplateLimits& limits);

}  // namespace strata::text::jinja
