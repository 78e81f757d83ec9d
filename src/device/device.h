// Device: a place where operators run. This build knows the CPU.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/cpu_features.h"
#include "base/log.h"
#include "base/profile.h"
#include "base/thread_pool.h"

namespace strata {

struct DeviceInfo {
  std::string name;         // "cpu"
  std::string description;  // processor model and instruction sets that arms may use
  uint64_t total_bytes = 0;
  uint64_t free_bytes = 0;
  int cores = 1;
};

// Everything found on this machine, one entry a device. Never fails.
std::vector<DeviceInfo> list_devices();

uint64_t free_memory_bytes();    // of the machine, 0 where the system does not say
uint64_t peak_resident_bytes();  // of this process, 0 where the system does not say
uint64_t current_resident_bytes();

// What the user asked for and what ran, by operator. Filled by evidence/arm.h.
struct ArmChoice {
  std::string op;
  std::string requested;  // empty: the default order
  std::string ran;        // empty: not called yet
};

// An ordered stream of operator calls on one device, with what they share. Not thread safe: one caller at a time.
class Queue {
 public:
  Queue(int threads, Log& log) : pool_(threads), log_(log) {}

  ThreadPool& pool() { return pool_; }
  Log& log() { return log_; }

  CpuFeatures cpu = cpu_features();  // what arms may use
  bool strict_arms = false;          // a refused request is an error instead of a logged fallback
  Profiler* profiler = nullptr;      // null: nothing is measured

  void request_arm(const std::string& op, const std::string& arm);
  ArmChoice& arm(const char* op);
  const std::vector<ArmChoice>& arms() const { return arms_; }

 private:
  ThreadPool pool_;
  Log& log_;
  std::vector<ArmChoice> arms_;
};

}  // namespace strata
