// The files of the page, within the program.
#pragma once

#include <span>
#include <string_view>

namespace strata::server {

struct WebAsset {
  std::string_view path;  // "/", "/page.js"
  std::string_view content_type;
  std::string_view etag;  // of the bytes, with its quotes
  std::span<const unsigned char> bytes;
};

std::span<const WebAsset> web_assets();

inline const WebAsset* find_web_asset(std::string_view path) {  // null: there is none
  for (const WebAsset& asset : web_assets())
    if (asset.path == path) return &asset;
  return nullptr;
}

// Content-Security-Policy of every file: nothing but the page's own files, and no text ever becomes markup.
inline constexpr std::string_view kWebPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'";

}  // namespace strata::server
