#include "support/model_image.h"

#include <algorithm>
#include <stdexcept>

namespace strata::test {
namespace {

using gguf::Value;
using gguf::ValueType;

void put_number(GgufBytes& out, ValueType type, const std::string& what, uint64_t u, int64_t i, double f) {
  switch (type) {
    case ValueType::U8:
    case ValueType::Bool: out.put(what, static_cast<uint8_t>(u)); return;
    case ValueType::U16: out.put(what, static_cast<uint16_t>(u)); return;
    case ValueType::U32: out.put(what, static_cast<uint32_t>(u)); return;
    case ValueType::U64: out.put(what, u); return;
    case ValueType::I8: out.put(what, static_cast<int8_t>(i)); return;
    case ValueType::I16: out.put(what, static_cast<int16_t>(i)); return;
    case ValueType::I32: out.put(what, static_cast<int32_t>(i)); return;
    case ValueType::I64: out.put(what, i); return;
    case ValueType::F32: out.put(what, static_cast<float>(f)); return;
    case ValueType::F64: out.put(what, f); return;
    case ValueType::String:
    case ValueType::Array: break;
  }
  throw std::logic_error("not a number");
}

}  // namespace

uint64_t ImageTensor::rows() const {
  uint64_t rows = 1;
  for (size_t axis = 1; axis < ne.size(); ++axis) rows *= ne[axis];
  return rows;
}

void ImageTensor::fit_data() {
  const DTypeInfo& t = info(dtype());
  if (ne[0] % t.block_elements != 0 || data.empty()) return;
  const std::string pattern = data;
  const size_t wanted = bytes_of(dtype(), static_cast<int64_t>(ne[0])) * rows();
  while (data.size() < wanted) data.append(pattern, 0, wanted - data.size());
  data.resize(wanted);
}

std::string ModelImage::arch() const {
  for (const gguf::KeyValue& one : metadata)
    if (one.key == "general.architecture") return one.value.s;
  return {};
}

Value* ModelImage::find(std::string_view key) {
  for (gguf::KeyValue& one : metadata)
    if (one.key == key) return &one.value;
  return nullptr;
}

void ModelImage::set(const std::string& key, Value value) {
  if (Value* old = find(key); old != nullptr)
    *old = std::move(value);
  else
    metadata.push_back({key, std::move(value)});
}

void ModelImage::erase(std::string_view key) {
  std::erase_if(metadata, [&](const gguf::KeyValue& one) { return one.key == key; });
}

ImageTensor* ModelImage::find_tensor(std::string_view name) {
  for (ImageTensor& one : tensors)
    if (one.name == name) return &one;
  return nullptr;
}

ImageTensor& ModelImage::tensor(std::string_view name) {
  if (ImageTensor* found = find_tensor(name)) return *found;
  throw std::logic_error("the image has no tensor " + std::string(name));
}

void ModelImage::erase_tensor(std::string_view name) {
  std::erase_if(tensors, [&](const ImageTensor& one) { return one.name == name; });
}

GgufBytes raw_value(const Value& value) {
  if (value.type == ValueType::String) return raw_string(value.s);
  if (value.type == ValueType::Array && value.element == ValueType::String) return raw_strings(value.ss);
  GgufBytes out;
  out.put("value type", static_cast<uint32_t>(value.type));
  if (value.type != ValueType::Array) {
    put_number(out, value.type, "value", value.u, value.i, value.f);
    return out;
  }
  out.put("array element type", static_cast<uint32_t>(value.element));
  out.put<uint64_t>("array count", value.array_size(), true);
  for (const uint64_t v : value.us) put_number(out, value.element, "element", v, 0, 0);
  for (const int64_t v : value.is) put_number(out, value.element, "element", 0, v, 0);
  for (const double v : value.fs) put_number(out, value.element, "element", 0, 0, v);
  return out;
}

GgufBuilder ModelImage::builder(uint32_t alignment) const {
  GgufBuilder file;
  file.alignment = alignment;
  if (alignment != 32) file.key("general.alignment", raw_scalar(kU32, alignment));
  for (const gguf::KeyValue& one : metadata) file.key(one.key, raw_value(one.value));
  for (const ImageTensor& one : tensors) {
    file.tensor(one.name, one.type, one.ne, 0);
    file.data += one.data;
  }
  file.data.resize((file.data.size() + alignment - 1) / alignment * alignment);
  return file;
}

void ModelImage::write(const std::string& path, uint32_t alignment) const {
  gguf::Writer writer(path, alignment);
  for (const gguf::KeyValue& one : metadata) writer.add(one.key, one.value);
  for (const ImageTensor& one : tensors) writer.add_tensor(one.name, one.dtype(), one.ne);
  writer.begin_data();
  for (const ImageTensor& one : tensors) writer.write(one.data.data(), one.data.size());
  writer.commit();
}

Value unsigned_value(ValueType type, uint64_t v) {
  Value value = Value::of_u64(v);
  value.type = type;
  return value;
}

Value signed_value(ValueType type, int64_t v) {
  Value value = Value::of_i32(0);
  value.type = type;
  value.i = v;
  return value;
}

Value real_value(double v) {
  Value value = Value::of_f32(0);
  value.f = v;
  return value;
}

Value empty_array(ValueType element) {
  Value value;
  value.type = ValueType::Array;
  value.element = element;
  return value;
}

}  // namespace strata::test
