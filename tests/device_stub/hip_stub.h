// A HIP library without a card: it records calls and fails where it is told to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace strata::stub {

struct Launch {
  std::string kernel;
  unsigned grid[3], block[3], shared;
  std::vector<char> arguments;
};

struct State {
  std::vector<std::string> architectures = {"gfx1100"};  // one a card
  std::vector<int> integrated = {0};
  uint64_t total = uint64_t{16} << 30, free = uint64_t{12} << 30;
  float milliseconds = 1;  // between any two events
  int fail_init = 0, fail_allocate = 0, fail_launch = 0, fail_stream = 0, left_behind = 0;
  bool never_done = false, other_addresses = false;

  std::vector<std::string> calls;
  std::vector<Launch> launches;
  int modules = 0, streams = 0, events = 0, allocations = 0, registrations = 0;  // that live
};

#ifdef STUB_RUNS_KERNELS  // launches are executed, in the interpreter of machine code
void note_memory(void* memory, size_t bytes);
void forget_memory(void* memory);
int run_kernel(const void* code, const Launch& launch);
#else
inline void note_memory(void*, size_t) {}
inline void forget_memory(void*) {}
inline int run_kernel(const void*, const Launch&) { return 0; }
#endif

}  // namespace strata::stub

extern "C" strata::stub::State* strata_stub_state();
