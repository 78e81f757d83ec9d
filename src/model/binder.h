// Finds tensors by name and compares their shapes with what the graph will use.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "gguf/gguf.h"
#include "model/weights.h"

namespace strata {

class Binder {
 public:
  Binder(const gguf::File& file, std::vector<Buffer>& owned) : file_(file), owned_(owned) {}

  void set_prefix(std::string prefix) { prefix_ = std::move(prefix); }  // "blk.3."
  bool has(const std::string& name) const { return file_.find_tensor(prefix_ + name) != nullptr; }

  // The tensor with extents outermost first. Any dtype; a file shape with the same elements and the same contiguous
  // axis count is accepted when leading or trailing axes of 1 differ.
  Tensor tensor(const std::string& name, std::initializer_list<int64_t> extents) const;
  // The same as f32: a view where the file holds aligned f32, a decoded copy otherwise. For small tensors.
  Tensor f32(const std::string& name, std::initializer_list<int64_t> extents);
  Tensor f32_if(const std::string& name, std::initializer_list<int64_t> extents);  // empty when absent

  // NAME.weight [out, in] with NAME.bias [out] and NAME.scale [1] where the file has them.
  Linear linear(const std::string& name, int64_t out, int64_t in);

  const gguf::File& file() const { return file_; }
  [[noreturn]] void fail(const std::string& name, const std::string& message) const;

 private:
  const gguf::File& file_;
  std::vector<Buffer>& owned_;
  std::string prefix_;
};

// Rows first .. first + count - 1 of a linear map of one part, as a part at output column `column`.
Linear::Part rows_of(const Tensor& weight, int64_t first, int64_t count, int64_t column);

}  // namespace strata
