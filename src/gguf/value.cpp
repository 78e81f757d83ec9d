#include <algorithm>
#include <utility>

#include "gguf/layout.h"

namespace strata::gguf {
namespace {

Value scalar(ValueType type) {
  Value value;
  value.type = type;
  return value;
}

Value array(ValueType element) {
  Value value;
  value.type = ValueType::Array;
  value.element = element;
  return value;
}

Value unsigned_array(ValueType element, std::vector<uint64_t> v) {
  Value value = array(element);
  value.us = std::move(v);
  return value;
}

}  // namespace

std::string_view to_string(ValueType type) {
  switch (type) {
    case ValueType::U8: return "u8";
    case ValueType::I8: return "i8";
    case ValueType::U16: return "u16";
    case ValueType::I16: return "i16";
    case ValueType::U32: return "u32";
    case ValueType::I32: return "i32";
    case ValueType::F32: return "f32";
    case ValueType::Bool: return "bool";
    case ValueType::String: return "string";
    case ValueType::Array: return "array";
    case ValueType::U64: return "u64";
    case ValueType::I64: return "i64";
    case ValueType::F64: return "f64";
  }
  return "unknown";
}

std::string printable(std::string_view bytes, size_t limit) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string text;
  for (const char c : bytes.substr(0, limit)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f && c != '\\') {
      text += c;
    } else {
      text += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  if (bytes.size() > limit) text += "...";
  return text;
}

size_t Value::array_size() const {
  if (type != ValueType::Array) return 0;
  switch (kind_of(element)) {
    case ValueKind::Unsigned: return us.size();
    case ValueKind::Signed: return is.size();
    case ValueKind::Real: return fs.size();
    case ValueKind::String: return ss.size();
    case ValueKind::Array: break;
  }
  return 0;
}

Value Value::of_u16(uint16_t v) {
  Value value = scalar(ValueType::U16);
  value.u = v;
  return value;
}

Value Value::of_u32(uint32_t v) {
  Value value = scalar(ValueType::U32);
  value.u = v;
  return value;
}

Value Value::of_u64(uint64_t v) {
  Value value = scalar(ValueType::U64);
  value.u = v;
  return value;
}

Value Value::of_i32(int32_t v) {
  Value value = scalar(ValueType::I32);
  value.i = v;
  return value;
}

Value Value::of_f32(float v) {
  Value value = scalar(ValueType::F32);
  value.f = v;
  return value;
}

Value Value::of_bool(bool v) {
  Value value = scalar(ValueType::Bool);
  value.u = v ? 1 : 0;
  return value;
}

Value Value::of_string(std::string v) {
  Value value = scalar(ValueType::String);
  value.s = std::move(v);
  return value;
}

Value Value::of_strings(std::vector<std::string> v) {
  Value value = array(ValueType::String);
  value.ss = std::move(v);
  return value;
}

Value Value::of_u32s(std::vector<uint64_t> v) { return unsigned_array(ValueType::U32, std::move(v)); }
Value Value::of_u64s(std::vector<uint64_t> v) { return unsigned_array(ValueType::U64, std::move(v)); }
Value Value::of_bools(std::vector<uint64_t> v) { return unsigned_array(ValueType::Bool, std::move(v)); }

Value Value::of_i32s(std::vector<int64_t> v) {
  Value value = array(ValueType::I32);
  value.is = std::move(v);
  return value;
}

Value Value::of_f32s(std::vector<double> v) {
  Value value = array(ValueType::F32);
  value.fs = std::move(v);
  return value;
}

}  // namespace strata::gguf
