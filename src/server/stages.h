// Where the engine's time went between two moments.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/profile.h"
#include "runtime/scheduler.h"

namespace strata::server {

struct StageTime {
  std::string name;
  double seconds = 0;
  int64_t calls = 0;
};

struct EngineTimes {
  std::vector<StageTime> stages;     // draft, prompt pass, output pass, choose
  std::vector<StageTime> operators;  // "matmul avx512vnni": only with a profiler
};

EngineTimes times_of(const Scheduler& scheduler,
                     Profiler* profiler);  // since the engine began; the profiler may be null
// What took time in between: stages in their order, operators by falling time.
EngineTimes between(const EngineTimes& before, const EngineTimes& after);

}  // namespace strata::server
