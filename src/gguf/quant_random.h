// Random weights of any type that has an encoder, drawn as blocks rather than encoded: as fast as the disk. Element i
// of tensor `key` is the same whatever is drawn around it, in whatever order.
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace strata::gguf {

class RandomBlocks {
 public:
  // Values of mean 0 and standard deviation `sigma`, roughly uniform within a block of a quantised type.
  // Error{Argument} for a type without an encoder.
  RandomBlocks(DType type, double sigma, uint64_t key);

  // Blocks first .. first + count - 1 (single elements of plain types). Thread safe.
  void draw(uint64_t first, uint64_t count, void* out) const;

 private:
  void draw_block(uint64_t index, uint8_t* block) const;

  DType type_;
  float sigma_;
  uint64_t key_;
  uint32_t bytes_;
  uint16_t scale_ = 0, min_ = 0;  // f16 of every block; its sign is random where a format has signed levels
  uint8_t exponent_ = 0;          // MXFP4: this one, or with probability up_ the next
  float up_ = 0;
};

}  // namespace strata::gguf
