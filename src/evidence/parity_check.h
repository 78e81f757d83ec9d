// Comparison of a case's outputs with what they must hold.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "evidence/parity.h"

namespace strata {

// Inputs as generated, so that every run starts from the same state.
class CaseSnapshot {
 public:
  explicit CaseSnapshot(const ParityCase& test);
  void restore() const;
  // The name of an input that differs from the snapshot though the operator does not change it; empty: none.
  std::string changed_input(const ParityCase& test) const;

 private:
  struct Saved {
    Tensor tensor;
    std::vector<uint32_t> words;
  };
  std::vector<Saved> saved_;
};

// Elements of 2 or 4 bytes as 32-bit words, and what such a word stands for.
size_t element_bytes(const Tensor& tensor);
uint32_t load_word(const void* element, size_t bytes);
void store_word(void* element, size_t bytes, uint32_t word);
uint32_t canary_of(DType dtype);
double value_of(DType dtype, uint32_t word);

// Fills outputs that are not also inputs with canaries.
void clear_outputs(const ParityCase& test);

struct CheckResult {
  std::string failure;  // the first one, empty when all holds
  double utilisation = 0;
  int64_t compared = 0;
};
CheckResult check_outputs(const ParityCase& test);

std::vector<uint32_t> words_of(const Tensor& tensor);  // one for each element, in row-major order

// All outputs as 32-bit words, in order.
std::vector<uint32_t> output_bits(const ParityCase& test);

}  // namespace strata
