// The addresses of a cache's pages, where operators read them: in host memory, or in that of an accelerator.
#pragma once

#include <vector>

#include "device/memory_space.h"

namespace strata {

class PageTable {
 public:
  PageTable() = default;
  explicit PageTable(MemorySpace space) : space_(std::move(space)) {}
  // A copy has a table of its own.
  PageTable(const PageTable& other) : space_(other.space_), pages_(other.pages_) {}
  PageTable(PageTable&& other) noexcept { swap(other); }
  PageTable& operator=(PageTable other) noexcept {
    swap(other);
    return *this;
  }
  ~PageTable() = default;

  size_t size() const { return pages_.size(); }
  const void* operator[](size_t page) const { return pages_[page]; }
  void set(size_t page, const void* memory);  // page <= size()
  void resize(size_t pages);                  // drops those behind

  void sync() const;                 // takes what changed to where operators read it. Error{Memory}
  const void* const* data() const {  // valid until the next change
    sync();
    return space_.on_host() ? pages_.data() : static_cast<const void* const*>(device_.data());
  }

 private:
  void swap(PageTable& other) noexcept;

  MemorySpace space_;
  std::vector<const void*> pages_;
  mutable SpaceMemory device_;
  mutable size_t synced_ = 0;  // pages from the start that the device has
};

}  // namespace strata
