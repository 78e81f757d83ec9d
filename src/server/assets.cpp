#include "server/assets.h"

#include <array>
#include <string>
#include <vector>

namespace strata::server {
namespace {

struct PageFile {
  std::string_view path, bytes;
};

#include "page_files.h"  // made by the build from the files of web/dist

constexpr std::string_view kPlaceholder =
    "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Strata</title>"
    "<p>This build of Strata holds no page. The API is at /v1, the state at /monitor/state.</p></html>\n";

std::string_view type_of(std::string_view path) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kTypes{{
      {".html", "text/html; charset=utf-8"},
      {".js", "text/javascript; charset=utf-8"},
      {".css", "text/css; charset=utf-8"},
      {".svg", "image/svg+xml"},
      {".png", "image/png"},
      {".ico", "image/x-icon"},
      {".json", "application/json"},
      {".woff2", "font/woff2"},
      {".txt", "text/plain; charset=utf-8"},
  }};
  for (const auto& [ending, type] : kTypes)
    if (path.ends_with(ending)) return type;
  return "application/octet-stream";
}

std::vector<Asset> all_assets() {
  std::vector<Asset> assets;
  bool has_page = false;
  for (const PageFile& file : kPageFiles) {
    assets.push_back({file.path, type_of(file.path), file.bytes, file.path.starts_with("/assets/")});
    if (file.path != "/index.html") continue;
    has_page = true;
    assets.push_back({"/", type_of(file.path), file.bytes, false});
  }
  if (!has_page) assets.push_back({"/", type_of(".html"), kPlaceholder, false});
  return assets;
}

}  // namespace

const Asset* find_asset(std::string_view path) {
  static const std::vector<Asset> assets = all_assets();
  for (const Asset& asset : assets)
    if (asset.path == path) return &asset;
  return nullptr;
}

}  // namespace strata::server
