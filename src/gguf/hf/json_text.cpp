#include "gguf/hf/json_text.h"

#include "base/mapped_file.h"

namespace strata::gguf::hf {
namespace {
constexpr size_t kMaxDepth = 64;
}

std::string read_json_text(const std::string& path, size_t max_bytes) {
  std::string text = read_file(path, max_bytes);
  check_json_depth(text, kMaxDepth, path);
  return text;
}

}  // namespace strata::gguf::hf
