#include "measure/disturbance.h"

#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string_view>

namespace strata {
namespace {

constexpr double kLeast = 0.05;  // seconds: five ticks
constexpr double kOfOneCore = 0.1, kClockDrop = 0.1;

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

// The first line of /proc/stat: user nice system idle iowait irq softirq steal, in ticks.
void read_machine(LoadReading& reading) {
  std::ifstream file("/proc/stat");
  std::string name;
  std::array<double, 8> ticks{};
  file >> name;
  for (double& value : ticks) file >> value;
  const auto per_second = static_cast<double>(::sysconf(_SC_CLK_TCK));
  if (!file || name != "cpu" || per_second <= 0) return;
  reading.busy = (ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6]) / per_second;
  reading.stolen = ticks[7] / per_second;
}

double mean_megahertz() {
  std::ifstream file("/proc/cpuinfo");
  constexpr std::string_view kKey = "cpu MHz";
  double sum = 0;
  int count = 0;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(kKey)) continue;
    std::istringstream text(line.substr(std::min(line.find(':'), line.size() - 1) + 1));
    double value = 0;
    if (text >> value) {
      sum += value;
      ++count;
    }
  }
  return count > 0 ? sum / count : 0;
}

std::string with_number(const char* form, double value) {
  char text[128];
  std::snprintf(text, sizeof text, form, value);
  return text;
}

}  // namespace

LoadReading read_load() {
  LoadReading reading;
  reading.megahertz = mean_megahertz();
  read_machine(reading);
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) == 0) {
    reading.own = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
    reading.major_faults = usage.ru_majflt;
  }
  reading.wall = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  return reading;
}

std::vector<std::string> disturbances(const LoadReading& before, const LoadReading& after, double fastest) {
  std::vector<std::string> flags;
  const double wall = after.wall - before.wall;
  if (const int64_t faults = after.major_faults - before.major_faults; faults > 0)
    flags.push_back(std::to_string(faults) + " pages came from disk");
  const double others = (after.busy - before.busy) - (after.own - before.own);
  if (before.busy > 0 && wall > 0 && others > kLeast && others > kOfOneCore * wall)
    flags.push_back(with_number("other processes took %.0f %% of a core", others / wall * 100));
  const double stolen = after.stolen - before.stolen;
  if (wall > 0 && stolen > kLeast && stolen > kOfOneCore / 2 * wall)
    flags.push_back(with_number("the host took %.0f %% of a core", stolen / wall * 100));
  if (after.megahertz > 0 && after.megahertz < fastest * (1 - kClockDrop))
    flags.push_back(with_number("clock at %.0f MHz", after.megahertz) + with_number(", %.0f before", fastest));
  return flags;
}

}  // namespace strata
