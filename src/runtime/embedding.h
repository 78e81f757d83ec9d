// One vector for a text, from the hidden states of its tokens.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "gguf/gguf.h"

namespace strata {

enum class Pooling : uint8_t {
  None,  // a vector for each token
  Mean,
  First,
  Last,
};
// What the file says its vectors are made by (ARCH.pooling_type); none: it does not say, as models that were made to
// generate text. Error{Model} for one that ranks texts instead.
std::optional<Pooling> file_pooling(const gguf::File& file);

class Pooler {
 public:
  Pooler(Pooling pooling, int64_t width) : pooling_(pooling), width_(static_cast<size_t>(width)) {}
  // [n, width], in the order of the tokens; how they are cut into calls changes no bit. Error{Model} when one is not
  // finite.
  void add(std::span<const float> rows);
  std::vector<float> vector() const;  // [width]; None: [tokens, width]. Empty before the first row

 private:
  const Pooling pooling_;
  const size_t width_;
  size_t count_ = 0;
  std::vector<double> sum_;
  std::vector<float> held_;
};

void normalise(std::span<float> vector);  // to length 1; zeros stay

}  // namespace strata
