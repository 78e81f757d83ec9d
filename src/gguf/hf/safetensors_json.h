// The two JSON texts of a checkpoint, parsed event by event: memory is proportional to what is kept, not to the text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace strata::gguf::hf {

struct HeaderEntry {
  std::string name;
  std::string dtype;
  std::vector<uint64_t> shape;
  std::pair<uint64_t, uint64_t> offsets;
};

struct IndexEntry {
  std::string name;
  std::string file;  // a plain file name: no separators, not ".."
};

// Error{Format} naming `path` and the tensor for anything that is not the documented form.
std::vector<HeaderEntry> parse_header_json(std::string_view text, const std::string& path);
std::vector<IndexEntry> parse_index_json(std::string_view text, const std::string& path);

}  // namespace strata::gguf::hf
