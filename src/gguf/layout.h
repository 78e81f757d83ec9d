// Rules of the container that reader and writer share. Functions named *_problem return an empty text when all is well.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "gguf/gguf.h"

namespace strata::gguf {

static_assert(std::endian::native == std::endian::little, "GGUF values are read and written in place");

inline constexpr std::string_view kMagic = "GGUF";
inline constexpr uint32_t kVersion = 3;
inline constexpr std::string_view kAlignmentKey = "general.alignment";
inline constexpr uint32_t kDefaultAlignment = 32;
inline constexpr uint32_t kMinAlignment = 8;          // elements of every type may then be read in place
inline constexpr uint32_t kMaxAlignment = 16u << 20;  // above it a file would be padding rather than data
inline constexpr size_t kMaxKey = 65535;
inline constexpr size_t kMaxTensorName = 63;
inline constexpr size_t kMaxDims = 4;

// Smallest encodings, by which counts are bounded: length, one byte of key, type, one byte of value;
// length, one byte of name, number of dims, one dim, type, offset.
inline constexpr uint64_t kMinKeyValueBytes = 8 + 1 + 4 + 1;
inline constexpr uint64_t kMinTensorInfoBytes = 8 + 1 + 4 + 8 + 4 + 8;

std::optional<ValueType> value_type_from_id(uint32_t id);

enum class ValueKind { Unsigned, Signed, Real, String, Array };  // Bool is Unsigned
ValueKind kind_of(ValueType type);

// Calls f.operator()<T>() with the C++ type in which a number of this type is stored; Bool is uint8_t.
// Strings and arrays have none: false is returned.
template <typename F>
bool with_stored_type(ValueType type, F&& f) {
  switch (type) {
    case ValueType::U8:
    case ValueType::Bool: f.template operator()<uint8_t>(); return true;
    case ValueType::I8: f.template operator()<int8_t>(); return true;
    case ValueType::U16: f.template operator()<uint16_t>(); return true;
    case ValueType::I16: f.template operator()<int16_t>(); return true;
    case ValueType::U32: f.template operator()<uint32_t>(); return true;
    case ValueType::I32: f.template operator()<int32_t>(); return true;
    case ValueType::U64: f.template operator()<uint64_t>(); return true;
    case ValueType::I64: f.template operator()<int64_t>(); return true;
    case ValueType::F32: f.template operator()<float>(); return true;
    case ValueType::F64: f.template operator()<double>(); return true;
    case ValueType::String:
    case ValueType::Array: break;
  }
  return false;
}

// Rounds up to a power of two; false when the result does not fit.
[[nodiscard]] bool align_up(uint64_t value, uint64_t alignment, uint64_t& out);

std::string alignment_problem(uint64_t alignment);
std::string name_problem(std::string_view name, size_t max_bytes);

// Shape against type: 1 to 4 dims, none zero, whole blocks, sizes below 2^63. Sets the tensor's bytes.
std::string shape_problem(DType type, std::span<const uint64_t> ne, uint64_t& bytes);

}  // namespace strata::gguf
