// Launches of the HIP library without a card, executed in the interpreter: what a card does, as seen by the host.
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "base/error.h"
#include "device/amdsim/machine.h"
#include "device_stub/hip_stub.h"

namespace strata::stub {
namespace {

struct Card {
  amdsim::Regions regions;
  ThreadPool pool{2};
  std::mutex mutex;  // of the programs
  std::map<const void*, std::unique_ptr<amdsim::Program>> programs;
};
Card& card() {
  static Card one;
  return one;
}

// An ELF file ends with its table of sections.
size_t size_of(const unsigned char* file) {
  uint64_t table = 0;
  uint16_t entry = 0, count = 0;
  std::memcpy(&table, file + 0x28, sizeof(table));
  std::memcpy(&entry, file + 0x3a, sizeof(entry));
  std::memcpy(&count, file + 0x3c, sizeof(count));
  return table + size_t{entry} * count;
}

const amdsim::Program& program_of(const void* code) {
  const std::lock_guard lock(card().mutex);
  auto& program = card().programs[code];
  const auto* bytes = static_cast<const unsigned char*>(code);
  if (!program) program = std::make_unique<amdsim::Program>(std::span(bytes, size_of(bytes)));
  return *program;
}

}  // namespace

void note_memory(void* memory, size_t bytes) { card().regions.add(memory, bytes, true); }
void forget_memory(void* memory) { card().regions.remove(memory); }

int run_kernel(const void* code, const Launch& launch) {
  constexpr int kLaunchFailure = 719;
  try {
    const amdsim::Program& program = program_of(code);
    amdsim::Launch run;
    run.what = "hip";
    run.program = &program;
    run.kernel = program.object().find(launch.kernel);
    if (run.kernel == nullptr) return kLaunchFailure;
    run.shape = {{launch.grid[0], launch.grid[1], launch.grid[2]},
                 {launch.block[0], launch.block[1], launch.block[2]},
                 launch.shared};
    run.arguments = launch.arguments.data();
    run.argument_bytes = launch.arguments.size();
    run_launch(run, card().regions, card().pool);
    return 0;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return kLaunchFailure;
  }
}

}  // namespace strata::stub
