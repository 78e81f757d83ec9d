// Small kernels in assembly, assembled by clang-19 where it is there, and run in the interpreter.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/amdsim/program.h"

namespace strata::amdsim {

struct SmallKernel {
  std::string name, body;
  uint32_t shared = 0, scratch = 0;
};

bool have_assembler();
// The code object of kernels that take two pointers, in s[0:1] as a structure; s2 is the work-group.
std::vector<unsigned char> assemble(const std::string& target, const std::vector<SmallKernel>& kernels);
// Runs a command without a shell; true: it ended well.
bool run_tool(const std::vector<std::string>& command);

struct Ran {
  std::string error;  // of the launch; empty: it ended
  std::vector<uint32_t> out;
  uint64_t instructions = 0;
};
// `groups` work-groups of `threads`; the first pointer is `out` (1024 words, zeros), the second 1024 words 3 n + 1.
Ran run_small(const Program& program, const std::string& kernel, int64_t groups, int64_t threads, uint64_t seed = 1,
              uint64_t limit = 100000, int pool_threads = 1);

}  // namespace strata::amdsim
