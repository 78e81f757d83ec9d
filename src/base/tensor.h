// Tensor: a view of elements that somebody else owns. Extents are written outermost first, the last one contiguous
// unless the strides say otherwise.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "base/dtype.h"

namespace strata {

inline constexpr int kMaxRank = 4;

struct Tensor {
  void* data = nullptr;
  DType dtype = DType::F32;
  int rank = 0;
  std::array<int64_t, kMaxRank> extents{};  // elements
  std::array<int64_t, kMaxRank> strides{};  // bytes from one index to the next; the last axis of a quantised tensor
                                            // is walked block by block, its stride is unused

  bool empty() const { return data == nullptr; }
  int64_t extent(int axis) const { return extents[static_cast<size_t>(axis)]; }
  int64_t stride(int axis) const { return strides[static_cast<size_t>(axis)]; }
  int64_t elements() const;
  bool contiguous() const;  // rows follow each other without gaps

  // Row i along the outermost axis: a tensor of rank - 1.
  Tensor operator[](int64_t index) const;
  // Indices first .. first + count - 1 of the outermost axis.
  Tensor slice(int64_t first, int64_t count) const;

  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
  float* f32() const { return static_cast<float*>(data); }
  // Start of row i along the outermost axis.
  template <class T>
  T* row(int64_t index) const {
    return reinterpret_cast<T*>(static_cast<char*>(data) + index * strides[0]);
  }
};

// Where the indices of a tensor's outermost axis lie when they are not one array: index i is at
// page[i / rows] + (i % rows) · stride(0), and the tensor's own data pointer is not used. No pages: one array.
struct RowPages {
  const void* const* page = nullptr;
  int64_t rows = 0;

  const char* at(const Tensor& tensor, int64_t index) const {
    return page == nullptr ? static_cast<const char*>(tensor.data) + index * tensor.stride(0)
                           : static_cast<const char*>(page[index / rows]) + index % rows * tensor.stride(0);
  }
};

// A contiguous tensor over memory of at least bytes_of(dtype, product of extents). Every extent is >= 0.
Tensor make_tensor(void* data, DType dtype, std::initializer_list<int64_t> extents);
inline Tensor make_f32(float* data, std::initializer_list<int64_t> extents) {
  return make_tensor(data, DType::F32, extents);
}

// "f32 [3, 128]"
std::string describe(const Tensor& tensor);

// Argument checks shared by the operators: Error{Argument} naming operator, argument, expected and given shape.
// An extent of -1 in `extents` matches anything. check_tensor also asks for a contiguous last axis.
void check_tensor(const char* op, const char* argument, const Tensor& tensor, DType dtype,
                  std::initializer_list<int64_t> extents);
void check_shape(const char* op, const char* argument, const Tensor& tensor, std::initializer_list<int64_t> extents);
[[noreturn]] void argument_error(const char* op, const std::string& message);

}  // namespace strata
