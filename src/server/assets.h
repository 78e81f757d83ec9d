// Files of the page, embedded in the program.
#pragma once

#include <string_view>

namespace strata::server {

struct Asset {
  std::string_view path;  // "/", "/app.js"
  std::string_view type;  // of its contents
  std::string_view bytes;
  bool immutable;  // its name changes with its contents
};

const Asset* find_asset(std::string_view path);  // null: there is none

}  // namespace strata::server
