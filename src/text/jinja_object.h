// What values of the rarer kinds hold.
#pragma once

#include <map>
#include <string>

#include "text/jinja_value.h"

namespace strata::text::jinja {

// The one thing that changes. It never holds a namespace or loop, so that values cannot form circles.
struct NamespaceObject {
  std::map<std::string, Value, std::less<>> values;
};

struct LoopObject {
  Value items;  // a List
  size_t index = 0;
};

}  // namespace strata::text::jinja
