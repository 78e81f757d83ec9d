// Where tensors lie: in host memory, or in that of the accelerator a queue runs on. What is done here is in order with
// the queue's operators.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "base/buffer.h"
#include "device/accelerator.h"

namespace strata {

class MemorySpace {
 public:
  MemorySpace() = default;  // of the host
  MemorySpace(std::shared_ptr<Accelerator> accelerator, std::shared_ptr<DeviceStream> stream)
      : accelerator_(std::move(accelerator)), stream_(std::move(stream)) {}

  bool on_host() const { return accelerator_ == nullptr; }
  const std::shared_ptr<Accelerator>& accelerator() const { return accelerator_; }

  void copy(void* to, const void* from, size_t bytes) const;       // either may be host memory; they do not overlap
  void move_down(void* to, const void* from, size_t bytes) const;  // to < from, both here; they may overlap
  void fill(void* to, int byte, size_t bytes) const;
  // Into host memory, which may be read when this returns.
  void fetch(void* to, const void* from, size_t bytes) const;
  void wait() const;  // until everything before is done

 private:
  std::shared_ptr<Accelerator> accelerator_;
  std::shared_ptr<DeviceStream> stream_;
};

// Parts of a space's memory as the host may read them, one at a time.
class Fetched {
 public:
  explicit Fetched(MemorySpace space) : space_(std::move(space)) {}
  const void* of(const void* data, size_t bytes);  // valid until the next call

 private:
  MemorySpace space_;
  std::vector<char> copy_;
};

// Memory of a space, owned. Host memory is zero-filled, that of an accelerator unspecified. Error{Memory}.
class SpaceMemory {
 public:
  SpaceMemory() = default;
  SpaceMemory(const MemorySpace& space, size_t bytes);

  void* data() const { return device_.data() != nullptr ? device_.data() : host_.data(); }
  size_t bytes() const { return device_.data() != nullptr ? device_.bytes() : host_.bytes(); }

 private:
  Buffer host_;
  DeviceMemory device_;
};

}  // namespace strata
