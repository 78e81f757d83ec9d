// Micro-benchmark of an operator's arms side by side in one process: the same inputs, interleaved, medians, and each
// time as a share of what the machine can do.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "evidence/arm.h"
#include "evidence/ceilings.h"
#include "evidence/parity_case.h"

namespace strata {

// One shape worth timing.
struct BenchShape {
  std::string name;       // "1 row, 32768 cells, 24/2 heads of 256, bf16"
  double bytes = 0;       // what one call must at least read and write
  double operations = 0;  // additions and multiplications of one call: 2 a multiply-add
  OperationKind kind = OperationKind::F32;
  int copies = 1;                                              // sets of inputs, taken in turn
  std::function<void(Queue&, int copy)> run;                   // the operator's public function
  std::function<std::string(const std::string& arm)> refusal;  // empty: the arm can run this shape
  std::vector<Tensor> outputs;                                 // of copy 0, to compare arms
  std::vector<double> bound;                                   // of each element of the outputs; empty: only bits count
  std::shared_ptr<void> memory;                                // owns everything above
  std::function<void(Queue&)> to_device;  // `run` works on copies in the memory of the queue's accelerator from now on
  std::function<void(Queue&)> from_device;  // copies what they hold back to the host, for `outputs`
};

struct BenchOptions {
  int threads = 2;
  int samples = 9, warmups = 3;
  double sample_seconds = 0.005;  // repetitions of one sample take at least this long together
  CpuFeatures cpu = cpu_features();
  std::shared_ptr<Accelerator> accelerator;  // null: the CPU
  std::function<bool()> cancelled;
  bool default_arm = false;  // time only the arm that a queue would take
};

struct BenchResult {
  std::string op, arm, shape;
  std::string refusal;                          // not empty: nothing below was measured
  double median = 0, fastest = 0, slowest = 0;  // seconds a call
  double bytes_per_second = 0, operations_per_second = 0;
  double share = 0;  // of the ceiling that binds: the least possible time over the median
  bool memory_bound = false;
  int samples = 0, repetitions = 0;
  double difference = 0;  // to the first arm that ran: worst |a - b| in bounds; -1: no bound is known
  int64_t differing = 0;  // elements with other bits than in the first arm that ran
};

// Times every arm of the list on one shape. The first that runs is what the others are compared with.
std::vector<BenchResult> run_bench(const std::string& op, const std::vector<ArmInfo>& arms, BenchShape& shape,
                                   const Ceilings& ceilings, const BenchOptions& options);

// The memory of a case once more, on an accelerator.
class DeviceCopy {
 public:
  void make(Queue& queue, const CaseMemory& memory);
  // Arguments are plain structs of tensors and numbers: a word of them that is an address in the memory of the case is
  // a pointer to it.
  void relocate(void* arguments, size_t bytes) const;
  void fetch(Queue& queue) const;

 private:
  struct Range {
    char* host;
    size_t bytes;
    DeviceMemory device;
  };
  std::vector<Range> ranges_;
};

// A shape from arguments that `fill` makes `copies` times; `outputs` names the tensors to compare.
template <class Args>
BenchShape bench_shape(std::string name, void (*run)(Queue&, const Args&), std::span<const Arm<Args>> arms, int copies,
                       const std::function<void(CaseMemory&, Random&, Args&)>& fill,
                       const std::vector<Tensor Args::*>& outputs) {
  struct State {
    CaseMemory memory;
    std::vector<Args> args;
    DeviceCopy device;
  };
  auto state = std::make_shared<State>();
  Random random(1);
  for (int i = 0; i < copies; ++i) fill(state->memory, random, state->args.emplace_back());
  BenchShape shape;
  shape.name = std::move(name);
  shape.copies = copies;
  shape.run = [state, run](Queue& queue, int copy) { run(queue, state->args[static_cast<size_t>(copy)]); };
  shape.refusal = [state, arms](const std::string& arm) { return refusal_of(arms, arm, state->args.front()); };
  for (Tensor Args::*member : outputs) shape.outputs.push_back(state->args.front().*member);
  static_assert(std::is_trivially_copyable_v<Args>);
  shape.to_device = [state](Queue& queue) {
    state->device.make(queue, state->memory);
    for (Args& args : state->args) state->device.relocate(&args, sizeof(Args));
  };
  shape.from_device = [state](Queue& queue) { state->device.fetch(queue); };
  shape.memory = state;
  return shape;
}

// How many sets of inputs of that size pass through the caches before one comes back.
int copies_past_caches(double bytes);

}  // namespace strata
