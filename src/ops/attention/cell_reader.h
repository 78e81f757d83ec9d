// For the oracle and the bound: the f32 values of one cell, whatever the dtype of k and v.
#pragma once

#include <vector>

#include "base/tensor.h"
#include "gguf/quant.h"

namespace strata {

class CellReader {
 public:
  CellReader(const Tensor& tensor, const RowPages& pages)
      : tensor_(tensor),
        pages_(pages),
        decode_(gguf::decoder(tensor.dtype)),
        decoded_(tensor.dtype == DType::F32 ? 0 : static_cast<size_t>(tensor.extent(2))) {}

  // Valid until the next call.
  const float* read(int64_t cell, int64_t kv_head) {
    const char* source = pages_.at(tensor_, cell) + kv_head * tensor_.stride(1);
    if (decoded_.empty()) return reinterpret_cast<const float*>(source);
    decode_(source, decoded_.data(), tensor_.extent(2));
    return decoded_.data();
  }

 private:
  const Tensor& tensor_;
  const RowPages& pages_;
  gguf::DecodeRow decode_;
  std::vector<float> decoded_;
};

}  // namespace strata
