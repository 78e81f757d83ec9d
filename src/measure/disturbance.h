// What may have disturbed a measurement: reads of the model from disk, other load, time that the host took, a slower
// clock. What the system does not tell is not flagged.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace strata {

struct LoadReading {
  double wall = 0;           // seconds of a steady clock
  double own = 0;            // processor seconds of this process
  double busy = 0;           // processor seconds of all processes on the machine; 0: unknown
  double stolen = 0;         // processor seconds that a host gave to others
  int64_t major_faults = 0;  // pages of this process that came from disk
  double megahertz = 0;      // mean clock of all cores; 0: unknown
};
LoadReading read_load();

// Between two readings, one text each; `fastest` is the highest clock seen before. Times of the system come in ticks of
// 10 ms: shares below 0.05 s are not told apart from them.
std::vector<std::string> disturbances(const LoadReading& before, const LoadReading& after, double fastest);

}  // namespace strata
