// GGUF files built field by field, without any check: the raw material of malformed files. Every field that is not set
// by hand is consistent, so that a test breaks one thing at a time. fields() says where each field lies in the bytes.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace strata::test {

struct GgufField {
  std::string what;  // "key count", "key length", "value type", "string length", "array count", "dim", ...
  size_t at = 0;
  size_t size = 0;
  bool counts = false;  // a count or a length of what follows
};

// Bytes with a note of what lies where.
class GgufBytes {
 public:
  template <typename T>
  GgufBytes& put(std::string what, T value, bool counts = false) {
    fields_.push_back({std::move(what), bytes_.size(), sizeof value, counts});
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  GgufBytes& raw(std::string_view bytes) {
    bytes_ += bytes;
    return *this;
  }
  GgufBytes& text(const std::string& what, std::string_view text, std::optional<uint64_t> length = {}) {
    return put<uint64_t>(what + " length", length.value_or(text.size()), true).raw(text);
  }
  GgufBytes& append(const GgufBytes& other) {
    for (GgufField field : other.fields_) {
      field.at += bytes_.size();
      fields_.push_back(std::move(field));
    }
    return raw(other.bytes_);
  }
  const std::string& bytes() const { return bytes_; }
  const std::vector<GgufField>& fields() const { return fields_; }

 private:
  std::string bytes_;
  std::vector<GgufField> fields_;
};

// Value type ids as they stand in files.
enum GgufTypeId : uint32_t { kU8, kI8, kU16, kI16, kU32, kI32, kF32, kBool, kString, kArray, kU64, kI64, kF64 };

// A value with its type: what follows a key.
template <typename T>
GgufBytes raw_scalar(uint32_t type, T value) {
  return GgufBytes().put<uint32_t>("value type", type).put("value", value);
}
inline GgufBytes raw_string(std::string_view text, std::optional<uint64_t> length = {}) {
  return GgufBytes().put<uint32_t>("value type", kString).text("string", text, length);
}
template <typename T>
GgufBytes raw_array(uint32_t element, const std::vector<T>& values, std::optional<uint64_t> count = {}) {
  GgufBytes bytes;
  bytes.put<uint32_t>("value type", kArray).put<uint32_t>("array element type", element);
  bytes.put<uint64_t>("array count", count.value_or(values.size()), true);
  for (const T& value : values) bytes.put("element", value);
  return bytes;
}
inline GgufBytes raw_strings(const std::vector<std::string>& values, std::optional<uint64_t> count = {}) {
  GgufBytes bytes;
  bytes.put<uint32_t>("value type", kArray).put<uint32_t>("array element type", kString);
  bytes.put<uint64_t>("array count", count.value_or(values.size()), true);
  for (const std::string& value : values) bytes.text("string", value);
  return bytes;
}

struct RawKey {
  std::string key;
  GgufBytes value;
  std::optional<uint64_t> key_length{};
};

struct RawTensor {
  std::string name;
  std::vector<uint64_t> ne{1};
  uint32_t type = 0;
  uint64_t offset = 0;
  std::optional<uint64_t> name_length{};
  std::optional<uint32_t> dims{};
};

struct GgufBuilder {
  std::string magic = "GGUF";
  uint32_t version = 3;
  std::optional<uint64_t> tensor_count{};
  std::optional<uint64_t> key_count{};
  std::vector<RawKey> keys{};
  std::vector<RawTensor> tensors{};
  uint64_t alignment = 32;  // of the padding; the key for it is the caller's
  std::string data{};       // the data section

  GgufBuilder& key(std::string name, GgufBytes value) {
    keys.push_back({std::move(name), std::move(value)});
    return *this;
  }
  // A tensor at the next aligned offset, filled with `bytes` bytes.
  GgufBuilder& tensor(std::string name, uint32_t type, std::vector<uint64_t> ne, size_t bytes, char fill = 0) {
    data.resize((data.size() + alignment - 1) / alignment * alignment);
    tensors.push_back({std::move(name), std::move(ne), type, data.size()});
    data.append(bytes, fill);
    return *this;
  }

  GgufBytes assemble() const {
    GgufBytes out;
    out.raw(magic).put<uint32_t>("version", version);
    out.put<uint64_t>("tensor count", tensor_count.value_or(tensors.size()), true);
    out.put<uint64_t>("key count", key_count.value_or(keys.size()), true);
    for (const RawKey& k : keys) out.text("key", k.key, k.key_length).append(k.value);
    for (const RawTensor& t : tensors) {
      out.text("tensor name", t.name, t.name_length);
      out.put<uint32_t>("dims", t.dims.value_or(static_cast<uint32_t>(t.ne.size())), true);
      for (const uint64_t extent : t.ne) out.put<uint64_t>("dim", extent);
      out.put<uint32_t>("tensor type", t.type).put<uint64_t>("tensor offset", t.offset);
    }
    const size_t padding = (alignment - out.bytes().size() % alignment) % alignment;
    return out.raw(std::string(padding, '\0')).raw(data);
  }
  std::string build() const { return assemble().bytes(); }
  std::vector<GgufField> fields() const { return assemble().fields(); }
};

// Overwrites a field in place.
template <typename T>
std::string patched(std::string bytes, size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
  return bytes;
}

}  // namespace strata::test
