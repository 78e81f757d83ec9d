#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "gguf/layout.h"

namespace strata::gguf {
namespace {

template <typename T>
void append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void append_string(std::string& out, std::string_view text) {
  append<uint64_t>(out, text.size());
  out.append(text);
}

template <typename T, typename Wide>
bool fits(ValueType type, Wide value) {
  if (type == ValueType::Bool) return value == 0 || value == 1;
  if constexpr (std::is_integral_v<T> && std::is_integral_v<Wide>) {
    return std::in_range<T>(value);
  } else if constexpr (std::is_floating_point_v<T> && std::is_floating_point_v<Wide>) {
    return !std::isfinite(value) || std::abs(value) <= std::numeric_limits<T>::max();
  }
  return false;  // not reached: a value's kind decides which of its fields is read
}

// False when the number does not fit the type in which it is to be stored.
template <typename Wide>
bool append_number(std::string& out, ValueType type, Wide value) {
  bool ok = true;
  with_stored_type(type, [&]<typename T>() {
    ok = fits<T>(type, value);
    if (ok) append(out, static_cast<T>(value));
  });
  return ok;
}

template <typename Wide>
bool append_numbers(std::string& out, ValueType type, const std::vector<Wide>& values) {
  append<uint64_t>(out, values.size());
  return std::all_of(values.begin(), values.end(), [&](Wide value) { return append_number(out, type, value); });
}

bool append_array(std::string& out, const Value& value) {
  append(out, static_cast<uint32_t>(value.element));
  switch (kind_of(value.element)) {
    case ValueKind::Unsigned: return append_numbers(out, value.element, value.us);
    case ValueKind::Signed: return append_numbers(out, value.element, value.is);
    case ValueKind::Real: return append_numbers(out, value.element, value.fs);
    case ValueKind::String:
      append<uint64_t>(out, value.ss.size());
      for (const std::string& text : value.ss) append_string(out, text);
      return true;
    case ValueKind::Array: break;
  }
  return false;
}

bool append_value(std::string& out, const Value& value) {
  append(out, static_cast<uint32_t>(value.type));
  switch (kind_of(value.type)) {
    case ValueKind::Unsigned: return append_number(out, value.type, value.u);
    case ValueKind::Signed: return append_number(out, value.type, value.i);
    case ValueKind::Real: return append_number(out, value.type, value.f);
    case ValueKind::String: append_string(out, value.s); return true;
    case ValueKind::Array: break;
  }
  return append_array(out, value);
}

void append_info(std::string& out, const TensorInfo& tensor) {
  append_string(out, tensor.name);
  append<uint32_t>(out, tensor.dims);
  for (uint32_t i = 0; i < tensor.dims; ++i) append<uint64_t>(out, tensor.ne[i]);
  append(out, static_cast<uint32_t>(tensor.type));
  append<uint64_t>(out, tensor.offset);
}

}  // namespace

Writer::Writer(const std::string& path, uint32_t alignment) : path_(path), alignment_(alignment) {
  if (const std::string problem = alignment_problem(alignment); !problem.empty()) refuse(problem);
  out_ = std::make_unique<OutputFile>(path);
  if (alignment == kDefaultAlignment) return;
  keys_.emplace(kAlignmentKey);
  metadata_.push_back({std::string(kAlignmentKey), Value::of_u32(alignment)});
}

Writer::~Writer() = default;

void Writer::refuse(const std::string& message, std::string_view subject) const {
  throw Error(ErrorKind::Argument, subject.empty() ? message : fmt::format("'{}': {}", printable(subject), message),
              path_);
}

void Writer::add(std::string key, Value value) {
  if (in_data_) refuse("metadata added after begin_data()", key);
  if (const std::string problem = name_problem(key, kMaxKey); !problem.empty()) refuse(problem, key);
  if (key == kAlignmentKey) refuse("the alignment is an argument of the writer, not a key to add", key);
  if (value.type == ValueType::Array && value.element == ValueType::Array) refuse("array of arrays", key);
  if (!keys_.insert(key).second) refuse("key added twice", key);
  metadata_.push_back({std::move(key), std::move(value)});
}

void Writer::add_tensor(std::string name, DType type, std::span<const uint64_t> ne) {
  TensorInfo tensor;
  if (in_data_) refuse("tensor added after begin_data()", name);
  if (const std::string problem = name_problem(name, kMaxTensorName); !problem.empty()) refuse(problem, name);
  if (const std::string problem = shape_problem(type, ne, tensor.bytes); !problem.empty()) refuse(problem, name);
  uint64_t end = 0;
  if (!checked_add(data_bytes_, tensor.bytes, end) || !align_up(end, alignment_, end))
    refuse("the data section would exceed 2^64 bytes", name);
  if (!names_.insert(name).second) refuse("tensor added twice", name);
  tensor.name = std::move(name);
  tensor.type = type;
  tensor.dims = static_cast<uint32_t>(ne.size());
  std::copy(ne.begin(), ne.end(), tensor.ne);
  tensor.offset = data_bytes_;
  data_bytes_ = end;
  tensors_.push_back(std::move(tensor));
}

void Writer::begin_data() {
  if (in_data_) refuse("begin_data() called twice");
  std::string header(kMagic);
  append<uint32_t>(header, kVersion);
  append<uint64_t>(header, tensors_.size());
  append<uint64_t>(header, metadata_.size());
  for (const auto& [key, value] : metadata_) {
    append_string(header, key);
    if (!append_value(header, value)) refuse("a number does not fit the type of the value", key);
  }
  for (const TensorInfo& tensor : tensors_) append_info(header, tensor);
  put(header.data(), header.size(), alignment_);
  in_data_ = true;
}

void Writer::write(const void* data, size_t bytes) {
  if (!in_data_) refuse("tensor data given before begin_data()");
  if (bytes == 0) return;
  if (current_ == tensors_.size()) refuse(fmt::format("{} bytes given after the last tensor", bytes));
  const TensorInfo& tensor = tensors_[current_];
  const uint64_t missing = tensor.bytes - given_;
  if (bytes > missing)
    refuse(fmt::format("{} bytes given, only {} of {} are missing", bytes, missing, tensor.bytes), tensor.name);
  const bool last = bytes == missing;
  put(data, bytes, last ? alignment_ : 1);  // the last tensor is padded too: other readers expect it
  given_ = last ? 0 : given_ + bytes;
  if (last) ++current_;
}

void Writer::commit() {
  if (!in_data_) refuse("commit() called before begin_data()");
  if (current_ < tensors_.size())
    refuse(fmt::format("{} of {} bytes given at commit()", given_, tensors_[current_].bytes), tensors_[current_].name);
  put(nullptr, 0, 1);
  const std::unique_ptr<OutputFile> out = std::move(out_);
  out->commit();
}

void Writer::put(const void* data, size_t bytes, uint64_t padding) {
  if (out_ == nullptr) refuse("the file is closed: it was committed, or writing failed before");
  try {
    out_->write(data, bytes);
    out_->pad_to(padding);
  } catch (...) {
    out_.reset();
    throw;
  }
}

}  // namespace strata::gguf
