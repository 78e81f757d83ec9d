// Importance of the input columns of matrices, from a GGUF file in the layout that is common for them: for a tensor
// NAME [in, out, matrices] an F32 tensor NAME.in_sum2 [in, matrices] with sums of squared inputs, and NAME.counts [1,
// matrices] with the number of inputs summed.
#pragma once

#include <string>
#include <vector>

#include "gguf/gguf.h"

namespace strata::gguf {

class Importance {
 public:
  explicit Importance(const std::string& path);  // Error{File, Format}; Error{Model} when it holds no importance

  // Mean squares [matrices, in] for a tensor of the model; empty when the file does not know it. Matrices without
  // inputs get zeros, which encoders take for none. Error{Model} for a shape that does not belong to the tensor.
  std::vector<float> of(const TensorInfo& tensor) const;

 private:
  const TensorInfo* real(const std::string& name) const;
  File file_;
};

}  // namespace strata::gguf
