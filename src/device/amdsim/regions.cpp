#include "device/amdsim/regions.h"

#include <algorithm>

namespace strata::amdsim {

void Regions::add(const void* memory, uint64_t bytes, bool writable) {
  const std::lock_guard lock(mutex_);
  const auto begin = reinterpret_cast<uint64_t>(memory);
  regions_[begin] = {begin, begin + bytes, writable};
}

void Regions::remove(const void* memory) {
  const std::lock_guard lock(mutex_);
  regions_.erase(reinterpret_cast<uint64_t>(memory));
}

std::vector<Region> Regions::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<Region> result;
  for (const auto& [begin, region] : regions_) result.push_back(region);
  return result;
}

const char* RegionCache::look(uint64_t address, uint32_t bytes, bool write) {
  auto after = std::upper_bound(regions_.begin(), regions_.end(), address,
                                [](uint64_t a, const Region& region) { return a < region.begin; });
  const char* wrong = "is outside every buffer";
  while (after != regions_.begin()) {  // a registered range may lie within another
    --after;
    if (address + bytes > after->end || address + bytes < address) {
      if (address < after->end) wrong = "reaches beyond the end of a buffer";
      continue;
    }
    if (write && !after->writable) {
      wrong = "is to memory that may only be read";
      continue;
    }
    last_ = *after;
    return nullptr;
  }
  return wrong;
}

}  // namespace strata::amdsim
