// A GGUF model in memory: metadata and tensors that tests change one thing at a time, then turn into bytes. Nothing is
// checked on the way, so that an image may also be a file that no writer would make.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "gguf/gguf.h"
#include "support/gguf_builder.h"

namespace strata::test {

struct ImageTensor {
  std::string name;
  uint32_t type = 0;         // as it stands in the file: may be one that does not exist
  std::vector<uint64_t> ne;  // ne[0] contiguous
  std::string data;          // of any length

  DType dtype() const { return static_cast<DType>(type); }
  uint64_t rows() const;  // product of all extents but the first
  // Data as the shape wants it: cut, or repeated from its start. Shapes of partial blocks keep their data.
  void fit_data();
};

struct ModelImage {
  std::vector<gguf::KeyValue> metadata;
  std::vector<ImageTensor> tensors;

  std::string arch() const;
  gguf::Value* find(std::string_view key);              // null when absent
  void set(const std::string& key, gguf::Value value);  // adds the key, or replaces its value in place
  void erase(std::string_view key);
  ImageTensor* find_tensor(std::string_view name);
  ImageTensor& tensor(std::string_view name);  // throws when absent
  void erase_tensor(std::string_view name);

  GgufBuilder builder(uint32_t alignment = 32) const;
  std::string bytes(uint32_t alignment = 32) const { return builder(alignment).build(); }
  // The same through gguf::Writer, which refuses what is no valid file.
  void write(const std::string& path, uint32_t alignment = 32) const;
};

// Values of types for which gguf::Value has no maker.
gguf::Value unsigned_value(gguf::ValueType type, uint64_t v);
gguf::Value signed_value(gguf::ValueType type, int64_t v);
gguf::Value real_value(double v);  // F32
gguf::Value empty_array(gguf::ValueType element);

// What follows a key in a file.
GgufBytes raw_value(const gguf::Value& value);

}  // namespace strata::test
