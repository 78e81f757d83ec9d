// One parsed GGUF file, before it becomes (a part of) a File.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "gguf/gguf.h"

namespace strata::gguf {

struct Shard {
  MappedFile file;
  uint64_t data_start = 0;
  std::vector<KeyValue> metadata;
  std::vector<uint64_t> key_at;     // byte offset of every key, for messages
  std::vector<uint32_t> key_order;  // indices into metadata, sorted by key
  std::vector<TensorInfo> tensors;
  std::vector<uint64_t> tensor_at;  // byte offset of every tensor info

  const KeyValue* find(std::string_view key) const;
};

// Parses and checks one file. metadata_left is what remains of limits.max_metadata; what this file takes is subtracted.
Shard parse_shard(const std::string& path, const Limits& limits, uint64_t& metadata_left);

// Error{Format} at a byte of a file; `subject` is the key or tensor concerned, for instance "key" and its name.
[[noreturn]] void format_error(const std::string& path, uint64_t at, std::string_view subject, std::string_view name,
                               const std::string& message);

}  // namespace strata::gguf
