// One safetensors file of fixtures, its tensors as float64.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/half.h"
#include "base/mapped_file.h"
#include "gguf/hf/safetensors.h"

namespace strata::test {

class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path)
      : file_(path), tensors_(gguf::hf::parse_safetensors_header(file_.bytes(), path)) {}

  bool has(const std::string& name) const { return find(name) != nullptr; }

  std::vector<int64_t> shape(const std::string& name) const {
    const auto& extents = at(name).shape;
    return {extents.begin(), extents.end()};
  }

  std::vector<double> values(const std::string& name) const {
    const gguf::hf::SourceTensor& tensor = at(name);
    const size_t size = gguf::hf::element_size(tensor.type);
    std::vector<double> result;
    for (uint64_t i = 0; i < tensor.elements; ++i)
      result.push_back(element(tensor.type, file_.bytes().data() + tensor.offset + i * size));
    return result;
  }

  std::vector<float> floats(const std::string& name) const {
    const std::vector<double> wide = values(name);
    return {wide.begin(), wide.end()};
  }

 private:
  using Type = gguf::hf::SourceType;

  const gguf::hf::SourceTensor* find(const std::string& name) const {
    for (const auto& tensor : tensors_)
      if (tensor.name == name) return &tensor;
    return nullptr;
  }
  const gguf::hf::SourceTensor& at(const std::string& name) const {
    if (find(name) == nullptr) throw Error(ErrorKind::File, "no tensor " + name, file_.path());
    return *find(name);
  }

  template <class T>
  static T load(const std::byte* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  static double element(Type type, const std::byte* from) {
    switch (type) {
      case Type::F64: return load<double>(from);
      case Type::F32: return static_cast<double>(load<float>(from));
      case Type::F16: return static_cast<double>(f16_to_f32(load<uint16_t>(from)));
      case Type::BF16: return static_cast<double>(bf16_to_f32(load<uint16_t>(from)));
      case Type::I64: return static_cast<double>(load<int64_t>(from));
      case Type::I32: return load<int32_t>(from);
      case Type::I8: return load<int8_t>(from);
      case Type::U8: return load<uint8_t>(from);
      default: throw Error(ErrorKind::Format, "no reader for " + std::string(gguf::hf::to_string(type)));
    }
  }

  MappedFile file_;
  std::vector<gguf::hf::SourceTensor> tensors_;
};

}  // namespace strata::test
