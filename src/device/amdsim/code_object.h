// A code object of an AMD GPU: an ELF file with kernels, as LLVM's AMDGPU usage document lays it out.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "device/amdsim/instruction.h"

namespace strata::amdsim {

struct KernelArgument {
  uint32_t offset = 0, size = 0;
  std::string kind;  // "by_value", "hidden_block_count_x"
};

struct Kernel {
  std::string name;
  std::vector<KernelArgument> arguments;
  uint32_t argument_bytes = 0, shared_bytes = 0, scratch_bytes = 0;
  uint32_t vector_registers = 0;
  uint64_t entry = 0;  // address in the object
  uint32_t resources1 = 0, resources2 = 0, resources3 = 0;
  uint16_t properties = 0;
  uint16_t preload = 0;
};

struct CodeRange {
  uint64_t begin = 0, end = 0;
};

struct CodeObject {
  Target target = Target::Gfx1100;
  Buffer memory;  // segments where they lie from one another; relocated
  uint64_t bytes = 0;
  std::vector<CodeRange> code;
  std::vector<CodeRange> writable;
  std::vector<Kernel> kernels;

  const Kernel* find(const std::string& name) const {
    for (const Kernel& kernel : kernels)
      if (kernel.name == name) return &kernel;
    return nullptr;
  }
  const unsigned char* at(uint64_t address) const { return static_cast<const unsigned char*>(memory.data()) + address; }
};

// Error{Format} for what is no code object of a target that is interpreted here.
CodeObject load_code_object(std::span<const unsigned char> file);
// The target a file names, without reading on; Error{Format}.
Target target_of(std::span<const unsigned char> file);

}  // namespace strata::amdsim
