#include "device/device.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string_view>
#include <thread>

namespace strata {
namespace {

// Value of the first "key : value" line of a /proc text file, empty when absent.
std::string proc_value(const char* path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, key.size(), key) != 0) continue;
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const size_t start = line.find_first_not_of(" \t", colon + 1);
    return start == std::string::npos ? std::string() : line.substr(start);
  }
  return {};
}

uint64_t kib_value(const char* path, std::string_view key) {
  std::istringstream text(proc_value(path, key));
  uint64_t kib = 0;
  text >> kib;
  return kib * 1024;
}

}  // namespace

std::vector<DeviceInfo> list_devices() {
  DeviceInfo cpu;
  cpu.name = "cpu";
  cpu.cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const std::string model = proc_value("/proc/cpuinfo", "model name");
  cpu.description = (model.empty() ? "processor" : model) + ", " + std::to_string(cpu.cores) +
                    (cpu.cores == 1 ? " core, " : " cores, ") + describe(cpu_features());
  cpu.total_bytes = kib_value("/proc/meminfo", "MemTotal");
  cpu.free_bytes = free_memory_bytes();
  return {cpu};
}

uint64_t free_memory_bytes() { return kib_value("/proc/meminfo", "MemAvailable"); }
uint64_t peak_resident_bytes() { return kib_value("/proc/self/status", "VmHWM"); }
uint64_t current_resident_bytes() { return kib_value("/proc/self/status", "VmRSS"); }

void* Queue::scratch(uint64_t bytes) {
  if (scratch_.empty() || scratch_.back().bytes() < bytes)
    scratch_.emplace_back(accelerator_, std::max<uint64_t>(bytes + bytes / 2, 1u << 20));
  return scratch_.back().data();
}

ArmChoice& Queue::arm(const char* op) {
  for (ArmChoice& choice : arms_)
    if (choice.op == op) return choice;
  arms_.push_back({op, {}, {}});
  return arms_.back();
}

void Queue::request_arm(const std::string& op, const std::string& arm_name) { arm(op.c_str()).requested = arm_name; }

}  // namespace strata
