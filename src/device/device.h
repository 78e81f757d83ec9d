// Device: a place where operators run: the CPU, or an accelerator (accelerator.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/cpu_features.h"
#include "base/log.h"
#include "base/profile.h"
#include "base/thread_pool.h"
#include "device/accelerator.h"
#include "device/memory_space.h"

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
  Queue(int threads, Log& log, const ThreadPlacement& placement = {}) : pool_(threads, placement), log_(log) {}
  // Operators run on the accelerator: tensors lie in its memory, or in host memory that is registered.
  Queue(std::shared_ptr<Accelerator> accelerator, Log& log)
      : pool_(1), log_(log), accelerator_(std::move(accelerator)), stream_(accelerator_->make_stream()) {}

  ThreadPool& pool() { return pool_; }
  Log& log() { return log_; }

  Accelerator* accelerator() const { return accelerator_.get(); }  // null: the CPU
  const std::shared_ptr<Accelerator>& shared_accelerator() const { return accelerator_; }
  DeviceStream& stream() { return *stream_; }  // of the accelerator
  MemorySpace space() const { return accelerator_ ? MemorySpace(accelerator_, stream_) : MemorySpace(); }
  // Scratch memory of the device for one operator call: the next call may take the same. Contents are unspecified.
  void* scratch(uint64_t bytes);
  template <class Arguments>
  void launch(const char* op, const KernelImage& image, const char* kernel, const LaunchShape& shape,
              const Arguments& arguments) {
    static_assert(std::is_trivially_copyable_v<Arguments>);
    stream_->launch(op, image, kernel, shape, &arguments, sizeof(arguments));
  }

  CpuFeatures cpu = cpu_features();  // what arms may use
  bool strict_arms = false;          // a refused request is an error instead of a logged fallback
  Profiler* profiler = nullptr;      // null: nothing is measured

  void request_arm(const std::string& op, const std::string& arm);
  ArmChoice& arm(const char* op);
  const std::vector<ArmChoice>& arms() const { return arms_; }

 private:
  ThreadPool pool_;
  Log& log_;
  std::shared_ptr<Accelerator> accelerator_;
  std::shared_ptr<DeviceStream> stream_;
  std::vector<DeviceMemory> scratch_;  // grown by adding: what launches under way use stays
  std::vector<ArmChoice> arms_;
};

}  // namespace strata
