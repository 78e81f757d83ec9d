// Shipped code objects with something patched, and single parity cases on them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "device/amdsim/program.h"
#include "device/amdsim/simulation.h"
#include "evidence/parity.h"

namespace strata::amdsim {

// Code of an image of this build for a target; empty: there is none.
std::span<const unsigned char> shipped_code(const std::string& image, const std::string& target);

// A copy of a code object, changed by address.
class PatchedCode {
 public:
  explicit PatchedCode(std::span<const unsigned char> code) : bytes_(code.begin(), code.end()) {}
  // The word at an address of the code; writes go to the copy.
  uint32_t word(uint64_t address) const;
  void set_word(uint64_t address, uint32_t value);
  void no_operation(uint64_t address, uint64_t end);  // s_nop in every word
  const std::vector<unsigned char>& bytes() const { return bytes_; }

 private:
  size_t offset_of(uint64_t address) const;
  std::vector<unsigned char> bytes_;
};

struct Mutant {
  std::string what;
  std::string image;
  std::vector<unsigned char> code;
  ReplacedCode replaced() const { return {{image, code}}; }
};

// Instructions of a program whose name (as opcode_names()) begins so: indices.
std::vector<uint32_t> instructions_of(const Program& program, const std::string& begin);
// The kernel that an address belongs to.
std::string kernel_at(const Program& program, uint64_t address);

// An operator's arm with the cases of its evidence, on simulated devices.
class CaseRunner {
 public:
  CaseRunner(const std::string& op, const std::string& arm);  // Error{Usage} when there is none
  CaseRunner(const OperatorEvidence& evidence, const ArmInfo& arm) : evidence_(&evidence), arm_(&arm) {}

  const OperatorEvidence& evidence() const { return *evidence_; }
  const ArmInfo& arm() const { return *arm_; }
  size_t cases() const { return makers().size(); }
  bool refused(size_t index) const;  // by the arm
  // The plain run of a case: the first thing that is wrong; empty: all is right.
  std::string failure(size_t index, const std::shared_ptr<Accelerator>& device) const;

 private:
  const std::vector<std::function<ParityCase()>>& makers() const;
  const OperatorEvidence* evidence_ = nullptr;
  const ArmInfo* arm_ = nullptr;
  mutable std::vector<std::function<ParityCase()>> makers_;
};

}  // namespace strata::amdsim
