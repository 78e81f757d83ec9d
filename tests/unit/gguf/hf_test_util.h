// Small checkpoints for the conversion tests: a temporary directory and a writer of safetensors files.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/half.h"

namespace strata::gguf::hf::testing {

class TempDir {
 public:
  TempDir() {
    static int counter = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("strata-hf-" + std::to_string(::getpid()) + "-" + std::to_string(counter++));
    std::filesystem::create_directories(path_);
  }
  ~TempDir() { std::filesystem::remove_all(path_); }
  TempDir(const TempDir&) = delete;
  std::string file(const std::string& name) const { return (path_ / name).string(); }
  std::string path() const { return path_.string(); }
  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(file(name), std::ios::binary) << bytes;
  }

 private:
  std::filesystem::path path_;
};

// `header` as the JSON of a safetensors file, then `data`.
inline std::string safetensors_bytes(const std::string& header, const std::string& data) {
  std::string file(8, '\0');
  const uint64_t length = header.size();
  std::memcpy(file.data(), &length, 8);
  return file + header + data;
}

// Tensors of a checkpoint by name; values are a fixed function of name and index, so that every element is its own.
class TinyCheckpoint {
 public:
  using Shape = std::vector<uint64_t>;

  static uint64_t count(const Shape& shape) {
    uint64_t elements = 1;
    for (const uint64_t extent : shape) elements *= extent;
    return elements;
  }
  void f32(const std::string& name, const Shape& shape, const std::vector<float>& values) {
    add(name, "F32", shape, values.data(), values.size() * 4);
  }
  void i64(const std::string& name, const std::vector<int64_t>& values) {
    add(name, "I64", {values.size()}, values.data(), values.size() * 8);
  }
  void raw(const std::string& name, const std::string& dtype, const Shape& shape, size_t bytes) {
    const std::string zeros(bytes, '\0');
    add(name, dtype, shape, zeros.data(), bytes);
  }
  void fill(const std::string& name, const Shape& shape) {
    std::vector<float> values(count(shape));
    uint32_t state = 2166136261u;
    for (const char c : name) state = (state ^ static_cast<unsigned char>(c)) * 16777619u;
    for (float& value : values) {
      state = state * 1664525u + 1013904223u;
      value = static_cast<float>(state >> 8) * 0x1p-24f - 0.5f;
    }
    f32(name, shape, values);
  }
  void erase(const std::string& name) { tensors_.erase(name); }
  bool has(const std::string& name) const { return tensors_.count(name) != 0; }

  std::string bytes() const {
    std::ostringstream header;
    std::string data;
    for (const auto& [name, tensor] : tensors_) {
      header << (header.tellp() == 0 ? '{' : ',') << '"' << name << "\":{\"dtype\":\"" << tensor.dtype
             << "\",\"shape\":[";
      for (size_t i = 0; i < tensor.shape.size(); ++i) header << (i ? "," : "") << tensor.shape[i];
      header << "],\"data_offsets\":[" << data.size() << ',';
      data += tensor.bytes;
      header << data.size() << "]}";
    }
    header << '}';
    return safetensors_bytes(header.str(), data);
  }

 private:
  struct Tensor {
    std::string dtype;
    Shape shape;
    std::string bytes;
  };
  void add(const std::string& name, const std::string& dtype, const Shape& shape, const void* data, size_t bytes) {
    tensors_[name] = {dtype, shape, std::string(static_cast<const char*>(data), bytes)};
  }
  std::map<std::string, Tensor> tensors_;
};

// The call must throw Error of this kind whose text holds `part`.
template <typename Call>
void expect_error(ErrorKind kind, const std::string& part, Call&& call) {
  try {
    call();
    ADD_FAILURE() << "no error; expected one with \"" << part << "\"";
  } catch (const Error& error) {
    EXPECT_EQ(to_string(error.kind()), std::string(to_string(kind))) << error.what();
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << "more than one line: " << error.what();
  }
}

}  // namespace strata::gguf::hf::testing
