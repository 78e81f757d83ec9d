// A code object, decoded: made once, then run by any number of threads.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/amdsim/code_object.h"

namespace strata::amdsim {

class Program {
 public:
  explicit Program(std::span<const unsigned char> file);  // Error{Format}, Error{Device}

  const CodeObject& object() const { return object_; }
  Target target() const { return object_.target; }
  const Instruction& operator[](uint32_t index) const { return instructions_[index]; }
  uint32_t size() const { return static_cast<uint32_t>(instructions_.size()); }
  // Of an address in the object; -1: no instruction begins there.
  int32_t index_at(uint64_t address) const;
  std::string text_at(uint32_t address) const;  // disassembled anew

 private:
  void decode(const CodeRange& range);

  CodeObject object_;
  std::vector<Instruction> instructions_;
  CodeRange code_;
  std::vector<int32_t> index_;  // by word of code
};

// One line of the disassembler; two entries for a dual one. `address`: of the instruction.
std::vector<Instruction> parse_instruction(const std::string& text, Target target, uint32_t address, uint32_t bytes);
// The name that semantics and tests go by: without _e32, _e64, _sdwa, _dpp; of a dual instruction both halves.
std::vector<std::string> opcode_names(const std::string& text);

}  // namespace strata::amdsim
