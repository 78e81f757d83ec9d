#include "base/tensor.h"

#include "base/error.h"

namespace strata {
namespace {

std::string shape_text(const int64_t* extents, size_t rank) {
  std::string text = "[";
  for (size_t axis = 0; axis < rank; ++axis) {
    if (axis > 0) text += ", ";
    text += extents[axis] < 0 ? "*" : std::to_string(extents[axis]);
  }
  return text + "]";
}

}  // namespace

int64_t Tensor::elements() const {
  int64_t product = 1;
  for (int axis = 0; axis < rank; ++axis) product *= extent(axis);
  return product;
}

bool Tensor::contiguous() const {
  int64_t expected = rank > 0 ? static_cast<int64_t>(bytes_of(dtype, extent(rank - 1))) : 0;
  if (rank > 0 && info(dtype).block_elements == 1 && stride(rank - 1) != info(dtype).block_bytes) return false;
  for (int axis = rank - 2; axis >= 0; --axis) {
    if (stride(axis) != expected && extent(axis) > 1) return false;
    expected *= extent(axis);
  }
  return true;
}

Tensor Tensor::operator[](int64_t index) const {
  Tensor part = *this;
  part.data = static_cast<char*>(data) + index * strides[0];
  part.rank = rank - 1;
  for (size_t axis = 0; axis + 1 < kMaxRank; ++axis) {
    part.extents[axis] = extents[axis + 1];
    part.strides[axis] = strides[axis + 1];
  }
  part.extents[kMaxRank - 1] = part.strides[kMaxRank - 1] = 0;
  return part;
}

Tensor Tensor::slice(int64_t first, int64_t count) const {
  Tensor part = *this;
  part.data = static_cast<char*>(data) + first * strides[0];
  part.extents[0] = count;
  return part;
}

Tensor make_tensor(void* data, DType dtype, std::initializer_list<int64_t> extents) {
  if (extents.size() > kMaxRank) throw Error(ErrorKind::Argument, "a tensor has at most 4 axes");
  Tensor tensor;
  tensor.data = data;
  tensor.dtype = dtype;
  for (int64_t extent : extents) {
    if (extent < 0) throw Error(ErrorKind::Argument, "negative extent " + std::to_string(extent));
    tensor.extents[static_cast<size_t>(tensor.rank++)] = extent;
  }
  if (tensor.rank == 0) return tensor;
  const auto last = static_cast<size_t>(tensor.rank - 1);
  tensor.strides[last] = info(dtype).block_bytes;
  int64_t bytes = static_cast<int64_t>(bytes_of(dtype, tensor.extents[last]));
  for (size_t axis = last; axis-- > 0;) {
    tensor.strides[axis] = bytes;
    bytes *= tensor.extents[axis];
  }
  return tensor;
}

std::string describe(const Tensor& tensor) {
  return std::string(to_string(tensor.dtype)) + " " +
         shape_text(tensor.extents.data(), static_cast<size_t>(tensor.rank));
}

void argument_error(const char* op, const std::string& message) { throw Error(ErrorKind::Argument, message, op); }

void check_shape(const char* op, const char* argument, const Tensor& tensor, std::initializer_list<int64_t> extents) {
  bool same = !tensor.empty() && static_cast<size_t>(tensor.rank) == extents.size();
  for (size_t axis = 0; same && axis < extents.size(); ++axis)
    same = extents.begin()[axis] < 0 || extents.begin()[axis] == tensor.extents[axis];
  if (same) return;
  argument_error(op, std::string(argument) + " is " + (tensor.empty() ? "absent" : describe(tensor)) + ", needs " +
                         shape_text(extents.begin(), extents.size()));
}

void check_tensor(const char* op, const char* argument, const Tensor& tensor, DType dtype,
                  std::initializer_list<int64_t> extents) {
  check_shape(op, argument, tensor, extents);
  if (tensor.dtype != dtype)
    argument_error(op, std::string(argument) + " is " + describe(tensor) + ", needs " + std::string(to_string(dtype)));
  const auto last = static_cast<size_t>(tensor.rank - 1);
  if (tensor.rank > 0 && tensor.extents[last] > 1 && tensor.strides[last] != info(dtype).block_bytes)
    argument_error(op, std::string(argument) + " has gaps along its last axis");
}

}  // namespace strata
