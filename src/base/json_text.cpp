#include "base/json_text.h"

#include "base/error.h"

namespace strata {

void check_json_depth(std::string_view text, size_t limit, const std::string& where) {
  size_t depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > limit)
        throw Error(ErrorKind::Format,
                    "JSON nests deeper than " + std::to_string(limit) + " levels at byte " + std::to_string(i), where);
    } else if ((c == '}' || c == ']') && depth > 0) {
      --depth;
    }
  }
}

}  // namespace strata
