// Memory that kernels may use: what the device gave out, what the host registered, and a launch's own.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

namespace strata::amdsim {

struct Region {
  uint64_t begin = 0, end = 0;
  bool writable = false;
};

class Regions {
 public:
  void add(const void* memory, uint64_t bytes, bool writable);
  void remove(const void* memory);
  std::vector<Region> all() const;  // ascending

 private:
  mutable std::mutex mutex_;
  std::map<uint64_t, Region> regions_;
};

// The regions of a launch as one thread looks them up.
class RegionCache {
 public:
  explicit RegionCache(std::vector<Region> regions) : regions_(std::move(regions)) {}
  // Null: may be accessed. Otherwise what is wrong.
  const char* check(uint64_t address, uint32_t bytes, bool write) {
    if (address < last_.begin || address + bytes > last_.end || (write && !last_.writable))
      return look(address, bytes, write);
    return nullptr;
  }

 private:
  const char* look(uint64_t address, uint32_t bytes, bool write);
  std::vector<Region> regions_;
  Region last_;
};

}  // namespace strata::amdsim
