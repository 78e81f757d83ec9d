// Buffer: owns memory, 64-byte aligned, zero-filled. Pages that are never touched cost nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>

#include "base/tensor.h"

namespace strata {

class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(size_t bytes);  // Error{Memory} saying how much was asked for
  ~Buffer();
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

  // A tensor over the start of the buffer; Error{Argument} if it does not fit.
  Tensor tensor(DType dtype, std::initializer_list<int64_t> extents) const;
  Tensor f32(std::initializer_list<int64_t> extents) const { return tensor(DType::F32, extents); }
  Tensor i32(std::initializer_list<int64_t> extents) const { return tensor(DType::I32, extents); }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace strata
