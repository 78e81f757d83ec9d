// Runs launches: work-groups over threads of the processor, waves of a group in turns from barrier to barrier.
#pragma once

#include <cstdint>
#include <set>

#include "base/thread_pool.h"
#include "device/accelerator.h"
#include "device/amdsim/program.h"
#include "device/amdsim/regions.h"

namespace strata::amdsim {

struct Launch {
  const char* what = "";
  const Program* program = nullptr;
  const Kernel* kernel = nullptr;
  LaunchShape shape;
  const void* arguments = nullptr;
  size_t argument_bytes = 0;
  uint64_t seed = 0;                               // of the order of waves
  uint64_t instruction_limit = uint64_t{1} << 32;  // of a wave
  std::set<uint32_t>* met = nullptr;               // gets the addresses of barriers at which several waves met
};

// Wave instructions that ran. Error{Device} names kernel, address, instruction, wave and lane.
uint64_t run_launch(const Launch& launch, const Regions& regions, ThreadPool& pool);

// A wave of a kernel that has no memory but its registers, as the tests of single instructions use it.
void prepare_wave(Wave& wave, Target target, uint32_t scratch_bytes);
void run_instruction(Wave& wave, const Instruction& i);
// A dual instruction whose halves read each other's destination.
void run_exchange(Wave& wave, const Instruction& first, const Instruction& second);
// To the next barrier or the end.
void run_wave(Wave& wave, uint64_t instruction_limit);

}  // namespace strata::amdsim
