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

// Fills outputs that are not also inputs with canaries.
void clear_outputs(const ParityCase& test);

struct CheckResult {
  std::string failure;  // the first one, empty when all holds
  double utilisation = 0;
  int64_t compared = 0;
};
CheckResult check_outputs(const ParityCase& test);

// All outputs as 32-bit words, in order.
std::vector<uint32_t> output_bits(const ParityCase& test);

}  // namespace strata
