#include "device/memory_space.h"

#include <algorithm>
#include <cstring>

namespace strata {

void MemorySpace::copy(void* to, const void* from, size_t bytes) const {
  if (bytes == 0) return;
  if (on_host())
    std::memcpy(to, from, bytes);
  else
    stream_->copy(to, from, bytes);
}

void MemorySpace::move_down(void* to, const void* from, size_t bytes) const {
  if (on_host()) {
    std::memmove(to, from, bytes);
    return;
  }
  // Pieces as long as the distance do not overlap with where they go.
  const auto distance = static_cast<size_t>(static_cast<const char*>(from) - static_cast<char*>(to));
  for (size_t done = 0; done < bytes && distance > 0; done += distance)
    stream_->copy(static_cast<char*>(to) + done, static_cast<const char*>(from) + done,
                  std::min(distance, bytes - done));
}

void MemorySpace::fill(void* to, int byte, size_t bytes) const {
  if (bytes == 0) return;
  if (on_host())
    std::memset(to, byte, bytes);
  else
    stream_->fill(to, byte, bytes);
}

void MemorySpace::fetch(void* to, const void* from, size_t bytes) const {
  copy(to, from, bytes);
  wait();
}

void MemorySpace::wait() const {
  if (!on_host()) stream_->wait();
}

const void* Fetched::of(const void* data, size_t bytes) {
  if (space_.on_host()) return data;
  copy_.resize(bytes);
  space_.fetch(copy_.data(), data, bytes);
  return copy_.data();
}

SpaceMemory::SpaceMemory(const MemorySpace& space, size_t bytes) {
  if (space.on_host())
    host_ = Buffer(bytes);
  else
    device_ = DeviceMemory(space.accelerator(), bytes);
}

}  // namespace strata
