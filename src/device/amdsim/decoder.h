// LLVM's disassembler, opened at run time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "device/amdsim/instruction.h"

namespace strata::amdsim {

const char* processor_of(Target target);  // "gfx1100"

// Why there is no decoder here; empty: there is.
std::string decoder_missing();

// Not thread safe.
class Decoder {
 public:
  explicit Decoder(Target target);  // Error{Device} where the library is missing
  ~Decoder();
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  // Bytes of the instruction, 0 where there is none.
  size_t decode(const unsigned char* code, size_t bytes, uint64_t address, std::string& text);

 private:
  void* context_;
};

}  // namespace strata::amdsim
