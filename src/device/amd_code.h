// What a code object for an AMD GPU says about itself: its target and the needs of its kernels.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace strata {

struct AmdKernel {
  std::string name;
  uint32_t argument_bytes = 0;  // of the struct of arguments, without what the runtime adds
  uint32_t segment_bytes = 0;   // of all arguments
  uint32_t shared_bytes = 0;    // fixed ones; a launch may add some
  uint32_t scratch_bytes = 0;   // of a lane
  uint32_t most_threads = 0;    // of a block
  uint32_t wave = 0;
  uint32_t vgprs = 0, agprs = 0, sgprs = 0;
  uint32_t vgpr_spills = 0, sgpr_spills = 0;
  bool dynamic_stack = false;
};

struct AmdCodeInfo {
  std::string target;  // "gfx1100"
  std::vector<AmdKernel> kernels;
};

// The note on kernels, in MessagePack. Error{Format} where there is none.
std::span<const unsigned char> amd_metadata(std::span<const unsigned char> code, const std::string& where);

// Error{Format} for bytes that are no code object of version 4 or newer; `where` names them.
AmdCodeInfo read_amd_code(std::span<const unsigned char> code, const std::string& where);

}  // namespace strata
